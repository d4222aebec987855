"""Rollouts are renormalised over what top-k, top-p or min-p kept, the trainer over the whole vocabulary.

Covered: with scores, by the filter itself; from logs alone, by log ratios of one sign only (log of the kept mass) and a
mean ratio below 1. Told from precision by that sign. Not covered: filters so light that they touch hardly any token.
Source: TRL 6789 and 7269, vime 69, NeMo-RL 902.
"""

from rlaudit.layers import Layer
from rlaudit.mismatch.cause import Cause, Outcome
from rlaudit.mismatch.logged_semantics import LEAST_MEAN_RATIO, ONE_SIDED, mean_ratio_minus_one, one_sidedness
from rlaudit.mismatch.logged_signature import logged_signature, temperature_signature
from rlaudit.mismatch.semantic_signature import FILTERS_NOT_REPLAYED, semantic_signature
from rlaudit.mismatch.token_evidence import TokenEvidence


def signature(evidence: TokenEvidence) -> Outcome:
    """The semantic verdict; without scores the sign of the log ratios."""
    if evidence.semantics is not None:
        return semantic_signature(evidence, FILTERS_NOT_REPLAYED)
    found = mean_ratio_minus_one(evidence)
    one_sided = one_sidedness(evidence)
    named = found.value < 0 and found.convicts(LEAST_MEAN_RATIO) and one_sided > ONE_SIDED
    # Another temperature makes the mean ratio differ from 1 too, but log ratios of both signs.
    temperature = temperature_signature(evidence, dishonest=True)
    if temperature is not None and temperature.large:
        named = False
    because = f"mean ratio - 1 = {found.value:+.3g}, and {one_sided:.0%} of the squared log ratio has one sign"
    return logged_signature(found, "mean ratio - 1", named, because)


CAUSE = Cause(
    name=FILTERS_NOT_REPLAYED,
    title="Filters not replayed by the trainer",
    layer=Layer.SEMANTIC,
    needs=(),
    signature=signature,
    falsifier="the same log ratios with the sampler's mask applied to the trainer's logits",
    next="replay the sampler's top-k, top-p and min-p in the trainer, or sample without them",
)
