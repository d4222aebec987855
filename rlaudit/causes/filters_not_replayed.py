"""Rollouts are renormalised over what top-k, top-p or min-p kept, the trainer over the whole vocabulary.

Covered: with the trainer's scores (--score), the filter is applied to the scores, and the result has to fit the
reported logprobs. From logs alone, log ratios of one sign and a mean ratio below 1: each log ratio is the log of the
probability that the filter keeps. The cause is named only if a filter was requested, or if the engine's top logprobs
show that tokens were cut away. Rounding gives log ratios of both signs, and a constant offset the same log ratio at
every token. A top-p of p cuts at most 1 - p of the probability, so a log ratio below log p has another cause.
Not covered: filters so light that they touch hardly any token. If a filter was not requested and no list of top
logprobs shows it, the report says that the mean ratio is off, but names no filter.
Source: TRL 6789 and 7269, vime 69, NeMo-RL 902.
"""

import numpy as np

from rlaudit.causes.attribution.cause import Cause, Outcome, Stage
from rlaudit.causes.attribution.semantic_signatures import (
    FILTERS_NOT_REPLAYED,
    logged_signature,
    temperature_signature,
)
from rlaudit.layers import Layer
from rlaudit.meaning.candidates import FILTERS, Semantics
from rlaudit.meaning.least_data import OF_A_BIAS
from rlaudit.meaning.log_statistics import (
    FEWEST_POSITIONS,
    ONE_SIDED,
    constant_shift,
    mean_ratio_minus_one,
    one_sidedness,
    one_sidedness_left,
)
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.meaning.token_tests import MEAN_RATIO_EFFECT

# A light filter under rounding in bfloat16: with one that was requested this much is enough.
ONE_SIDED_IF_REQUESTED = 0.75


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the sign and the size of the log ratios."""
    excess = mean_ratio_minus_one(evidence)
    one_sided = one_sidedness(evidence)
    least = ONE_SIDED_IF_REQUESTED if is_requested(evidence) else ONE_SIDED
    sided_K = np.append(one_sided, one_sidedness_left(evidence)) > least
    below = excess.value < 0 and _has_filter(evidence) and excess.high > least_kept(evidence.sampling) - 1.0
    below = below and constant_shift(evidence) is None
    # Another temperature makes the mean ratio differ from 1 too, but log ratios of both signs.
    temperature = temperature_signature(evidence, of_report=True)
    if temperature is not None and temperature.large:
        below = False
    surely = excess.shows(MEAN_RATIO_EFFECT)
    named = below and surely and bool(sided_K.all())
    leans = below and (surely or excess.leans(MEAN_RATIO_EFFECT)) and bool(sided_K.any()) and not named
    because = (
        f"mean ratio - 1 = {excess.value:+.3g}, and tokens of one sign make {100 * one_sided:.0f} % of the squared "
        "log ratio. Filters do this; rounding gives both signs"
    )
    return logged_signature(excess, "mean ratio - 1", named, because, leans)


def is_requested(evidence: TokenEvidence) -> bool:
    """Return whether a filter was requested that the trainer does not replay."""
    requested = evidence.sampling
    unlike = [name for name in FILTERS if getattr(requested, name) != getattr(evidence.trainer, name)]
    return requested.filtered and bool(unlike)


def _has_filter(evidence: TokenEvidence) -> bool:
    """Return whether a filter was requested that the trainer does not replay, or shows in the engine's own lists."""
    if is_requested(evidence):
        return True
    if evidence.missing(("rollout_top_ids", "rollout_top_logprobs")):
        return False
    # Engines list a token that a filter took away with its id and no probability; padding has no id.
    cut_TK = (evidence.tops["rollout_top_ids"] >= 0) & np.isneginf(evidence.tops["rollout_top_logprobs"])
    return int(cut_TK.any(axis=1).sum()) >= FEWEST_POSITIONS


def least_kept(sampling: Semantics) -> float:
    """Return the mass that the filters keep at least; only top-p alone promises one."""
    has_only_top_p = sampling.top_k == 0 and sampling.min_p == 0
    return sampling.top_p if sampling.top_p < 1 and has_only_top_p else 0.0


CAUSE = Cause(
    name=FILTERS_NOT_REPLAYED,
    title="Filters not replayed by the trainer",
    layer=Layer.SEMANTIC,
    stage=Stage.MEANING,
    least=OF_A_BIAS,
    signature=signature,
    falsifier="the log ratios stay the same with the sampler's mask applied to the trainer's logits",
    next="replay the sampler's top-k, top-p and min-p in the trainer, or sample without them",
)
