"""Rollouts are cut by top-p, top-k or min-p, and the trainer computes the whole softmax.

What changed
    Processed logprobs (V0, and V1 from 0.10.2 on with `processed_logprobs`) are renormalised over the tokens that
    the filter keeps. Raw logprobs are not renormalised, although the tokens come from the filtered distribution.

Why it matters
    With processed logprobs the mean importance ratio is below 1: it is the probability that the filter keeps. TRL's
    pull request 7269 measures a mean ratio of 0.896 with a filter that keeps a probability of 0.895. With raw logprobs
    no metric shows that the tokens are off-policy; only a test of the tokens themselves does. Apply the same filter in
    the trainer, or sample without filters.

Example
    Reported:

        to: 0.18.1
        engine: {logprobs_mode: processed_logprobs}
        sampling: {temperature: 1.0, top_p: 0.9}
        trainer: {divides_by_temperature: true, replays_filters: false, uses_rollout_logprobs: true}

    Use instead:

        sampling: {top_p: 1.0}

Safe to ignore when
    The filter keeps practically all probability (top_p=0.999 of a peaked distribution), or the trainer applies the
    filter, too.

How to confirm
    `rlaudit ablate quick` with your sampling parameters: the report names what the filter keeps. vLLM 0.28.0 and later
    return the kept set with `return_sampling_mask`.
"""

from collections.abc import Iterable, Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import FILTERS, Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import (
    Returned,
    asks_for_none,
    engine_of,
    in_the_loss,
    returned_logprobs,
)
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import filters, is_greedy, listed, temperature, unknown_among
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

CONFIRM = Trial(
    ("logprobs-mode",), look="expect a mean ratio below 1, and filters-not-replayed as cause in the semantic layer"
)


def check(audit: Audit) -> Iterator[Finding]:
    """Report filters of the sampler that the trainer does not apply."""
    replays = audit.config.facts.replays_filters
    if replays is True or is_greedy(audit.after) or asks_for_none(audit.config):
        return
    cut = filters(audit.after)
    if cut:
        severity = Severity.WARNING if audit.config.has_trainer else Severity.NOTE
        trainer = "the trainer does not apply" if replays is False else "the trainer would have to apply as well"
        message = f"Rollouts are sampled with {listed(cut)}, which {trainer}. {_consequence(audit)}. {_way_out(cut)}"
        sets = {name: NEUTRAL_SAMPLING[name] for name in cut}
        yield RULE.finding(audit, severity, next(iter(cut)), message, confirm=CONFIRM, sets=sets)
    elif audit.config.has_trainer:
        names, why = unknown_among(audit.after, FILTERS)
        if names:
            message = f"It is not known whether {', '.join(names)} filter the rollouts' tokens: {why}."
            yield RULE.finding(audit, Severity.NOTE, names[0], message)


def _consequence(audit: Audit) -> str:
    returned = returned_logprobs(audit.after)
    if isinstance(returned, Unknown) or audit.config.facts.uses_rollout_logprobs is False:
        return "The tokens are off-policy"
    if returned is Returned.PROCESSED:
        ratio = "mean importance ratio" if in_the_loss(audit.config) else "logged mean importance ratio"
        returns = f"{engine_of(audit.after)} returns logprobs of the filtered distribution"
        return f"{returns}, the trainer computes the whole softmax. So the {ratio} is below 1"
    whole = (
        f"The tokens are off-policy, and no metric shows it: {engine_of(audit.after)} returns logprobs of the "
        "whole softmax"
    )
    keep = "Processed logprobs would not make the tokens on-policy, and would change every ratio"
    return f"{whole}. {keep}" if _needs_raw(audit) else whole


def _way_out(cut: Iterable[str]) -> str:
    settings = ", ".join(f"{name}={NEUTRAL_SAMPLING[name]:g}" for name in cut)
    return f"Set {settings}, or apply the same filter in the trainer."


def _needs_raw(audit: Audit) -> bool:
    """Return whether the trainer computes raw logprobs: processed ones would only add a bias."""
    plain = audit.config.facts.divides_by_temperature is False or temperature(audit.after) == 1
    unsure = audit.config.facts.uses_rollout_logprobs is not None and in_the_loss(audit.config)
    return plain and unsure and audit.config.facts.replays_filters is False


RULE = Rule("filters-not-replayed", Layer.SEMANTIC, check)
