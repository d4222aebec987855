"""Which meaning do the tokens themselves follow? The likelihood of the sampled tokens under each candidate.

exp(log-likelihood under a fixed meaning - under the trainer) has mean 1 when tokens come from the trainer, so its
inverse, times the number of candidates, is a p-value without any approximation. Each candidate is mixed with a trace of
the trainer (EDGE_SHARE), because engine noise puts a few tokens beyond the edge of a nucleus.

Covered: temperature, filters and penalties among the candidates. Not covered: a sampler that differs by less per token
than LEAST_GAIN; that is noise between engines until an ablation says otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.report_fit import paired_interval, refined_temperature
from rlaudit.meaning.scored_tokens import ScoredTokens, edge_share
from rlaudit.meaning.token_tests import ALPHA
from rlaudit.statistics.resample import sums_left

LEAST_GAIN = 1e-3
# Of the trainer's distribution in the mixture: small, because it costs every token of a right report its own size in
# nats.
EDGE_SHARE = 2e-3
OUT_OF_TRAINER_NATS = -20.0


@dataclass(frozen=True)
class SampleFit:
    """The meaning that the tokens follow."""

    # Accepted (the trainer's own unless another is).
    theta: Semantics
    # Most likely, accepted or not.
    best: Semantics
    differs: bool
    # Nats per token by which `best` is likelier than the trainer, with a 99.9 % interval over prompts.
    gain: float
    gain_low: float
    gain_high: float
    # Of the likelihood ratio.
    ln_p: float
    # Whether, with some prompts left out, a meaning is that much likelier (`resample.py`); `differs` asks for it
    # whichever are.
    gains_some: bool = False


def fit_sample(
    scored: ScoredTokens,
    trainer: Semantics,
    likely: Sequence[Semantics] = (),
    seen_in_tokens: bool = False,
    floor_k2: float | None = None,
    seed: int = 0,
) -> SampleFit:
    """Fit theta_sample.

    likely: meanings to prefer, in order, if the tokens cannot tell them from the best: the request, the report's.
    seen_in_tokens: whether a token test already shows that the tokens do not follow the trainer.
    """
    trainer_T = _softened(scored, trainer)

    def mixed(logprobs_T: Floats) -> Floats:
        return np.logaddexp(math.log1p(-EDGE_SHARE) + logprobs_T, math.log(EDGE_SHARE) + trainer_T)

    def cost_of(logprobs_T: Floats) -> float:
        return -float(mixed(logprobs_T).mean())

    columns = scored.candidate_logprobs_TC
    likely_PC = np.stack(
        [scored.per_cluster(trainer_T), *(scored.per_cluster(mixed(under_T.astype(float))) for under_T in columns.T)],
        axis=1,
    )
    likely_C = likely_PC[:, 1:].sum(axis=0)
    best = scored.candidates[int(np.argmax(likely_C))] if likely_C.size else trainer
    best = refined_temperature(scored, best, cost_of)
    chosen, chosen_T = best, _under(scored, best, trainer)
    for preferred in likely:
        preferred_T = scored.logprobs_under(preferred)
        if preferred_T is None or not preferred.differences(trainer):
            continue
        low, _ = paired_interval(scored, mixed(chosen_T) - mixed(preferred_T), seed)
        if low <= 0:
            chosen, chosen_T = preferred, preferred_T
            break
    gain_T = mixed(chosen_T) - trainer_T
    gain = float(gain_T.mean())
    ln_p = min(0.0, math.log(max(1, len(scored.candidates))) - float(gain_T.sum()))
    low, high = paired_interval(scored, gain_T, seed)
    least = max(LEAST_GAIN, 2.0 * (floor_k2 or 0.0))
    prior = math.log(max(1, len(scored.candidates)))

    def gains(gain_PC: Floats) -> NDArray[np.bool_]:
        """Return (K,) whether any of these gains is enough without each part of the prompts."""
        left_KC = sums_left(np.column_stack([gain_PC, scored.lengths_P]))
        most_K = left_KC[:, :-1].max(axis=1, initial=0.0)
        return np.asarray((prior - most_K < math.log(ALPHA)) & (most_K > least * left_KC[:, -1]))

    surely = ln_p < math.log(ALPHA) and gain > least and bool(gains(scored.per_cluster(gain_T)[:, None]).all())
    differs = bool(chosen.differences(trainer)) and low > 0 and scored.clusters > 2 and (surely or seen_in_tokens)
    apart = [place for place, candidate in enumerate(scored.candidates, start=1) if candidate.differences(trainer)]
    return SampleFit(
        theta=chosen if differs else trainer,
        best=chosen,
        differs=differs,
        gain=gain,
        gain_low=low,
        gain_high=high,
        ln_p=ln_p,
        gains_some=not differs and bool(gains(likely_PC[:, apart] - likely_PC[:, :1]).any()),
    )


def _softened(scored: ScoredTokens, trainer: Semantics) -> Floats:
    """Return (T,) the trainer's logprobs, with tokens that noise may carry across the edge of a filter it replays."""
    floor_T = np.maximum(scored.trainer_logprobs_T, OUT_OF_TRAINER_NATS)
    unfiltered_T = scored.logprobs_under(trainer.unfiltered)
    if not trainer.filtered or unfiltered_T is None:
        return floor_T
    edge = edge_share(scored)
    return np.logaddexp(math.log1p(-edge) + floor_T, math.log(edge) + unfiltered_T)


def _under(scored: ScoredTokens, meaning: Semantics, trainer: Semantics) -> Floats:
    logprobs_T = scored.logprobs_under(meaning)
    if logprobs_T is None:
        if meaning != trainer:
            raise ValueError(f"{meaning.name} is not among the candidates that were scored")
        return scored.trainer_logprobs_T
    return logprobs_T


def prefers(scored: ScoredTokens, first: Semantics, second: Semantics, trainer: Semantics, seed: int = 0) -> float:
    """Return which of two meanings the tokens follow: nats per token for `first`, 0.0 if an interval includes 0.

    Each is mixed with a trace of the trainer, as above.
    """
    trainer_T = _softened(scored, trainer)
    trace_T = math.log(EDGE_SHARE) + trainer_T
    first_T = np.logaddexp(math.log1p(-EDGE_SHARE) + _under(scored, first, trainer), trace_T)
    second_T = np.logaddexp(math.log1p(-EDGE_SHARE) + _under(scored, second, trainer), trace_T)
    low, high = paired_interval(scored, first_T - second_T, seed)
    return float((first_T - second_T).mean()) if low > 0 or high < 0 else 0.0
