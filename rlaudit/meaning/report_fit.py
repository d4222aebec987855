"""Which meaning do the reported logprobs follow? A regression on the trainer's scores under each candidate.

R(meaning) = mean Huber loss of (reported - logprob under the meaning) / (1 - p). Noise on logits moves a logprob in
proportion to 1 - p, so a loss in nats is that of the few tokens of which neither side is sure: in bfloat16 it hid a
top-p of 0.95, under which near-certain tokens are reported with exactly 0. The mean, not the median: a light top-p or a
penalty moves a minority of the tokens, and a median does not see them. A token that a meaning calls impossible was
nevertheless sampled: engine noise carries some across the edge of a filter; only more than that rules the meaning out.

A meaning other than the trainer's is accepted when it halves the loss, when a paired interval over prompts of the
difference excludes 0, and when the trainer's own loss is above twice that of noise; and when it does so whichever
prompt is left out (`resample.py`). One that halves it with some prompts left out only leaves the verdict open.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.scored_tokens import ScoredTokens, edge_share
from rlaudit.statistics.resample import REPLICATES, cluster_weights, ratio, resampled, sums_left

# Of a logit. From here on a token counts linearly: one that is nats off says little more than one that is one nat off.
HUBER_NATS = 1.0
IMPOSSIBLE_NATS = 20.0
# Of the trainer's loss: a meaning that is right takes away all but noise, one that only correlates does not.
HALF = 0.5
# Parity is called up to twice the floor (`attribute.py`), so below it there is nothing to explain.
TIMES_FLOOR = 2.0
# Two float32 engines agree to 1e-5 nats at best; a loss below this is agreement, no matter what explains it.
LEAST_FLOOR = 1e-6
# Of 1 - p: float32 sums of a large vocabulary err by 1e-5, a hundredth of it.
LEAST_ROOM = 1e-3
# Logs that keep few digits report near-certain tokens with 0, as a filter does: what is left to others has to be many
# of their steps.
ROOM_IN_STEPS = 10.0
DIGITS = (1, 2, 3, 4)


@dataclass(frozen=True)
class ReportFit:
    """The meaning that the reported logprobs follow."""

    # The accepted meaning (the trainer's own unless another is accepted).
    theta: Semantics
    # The one with the least loss, accepted or not.
    best: Semantics
    differs: bool
    # loss, trainer_loss: mean Huber losses, nats^2 of a logit.
    loss: float
    trainer_loss: float
    # gain_low, gain_high: 99.9 % interval over prompts of trainer_loss - loss of `best`.
    gain_low: float
    gain_high: float
    # The loss that noise alone would make.
    floor: float
    # Whether a meaning halves the loss with some prompts left out.
    halves_some: bool = False

    @property
    def ratio(self) -> float:
        """Loss of the best meaning in units of the trainer's."""
        return self.loss / self.trainer_loss if self.trainer_loss > 0 else 1.0

    @property
    def suspicious(self) -> bool:
        """Whether another meaning halves a loss above the noise, although prompts are too few to be sure."""
        halves = self.ratio < HALF and self.trainer_loss > TIMES_FLOOR * self.floor
        return not self.differs and (halves or self.halves_some)


def rooms(scored: ScoredTokens, trainer: Semantics) -> Floats:
    """Return (T,) what either side leaves to other tokens, 1 - p, at least what can be told from 0.

    Filters of the trainer are left aside.
    """
    unfiltered_T = scored.logprobs_under(trainer.unfiltered)
    trainer_T = scored.trainer_logprobs_T if unfiltered_T is None else unfiltered_T
    sure_T = np.minimum(trainer_T, scored.rollout_logprobs_T)
    least = max(LEAST_ROOM, ROOM_IN_STEPS * _step(scored.rollout_logprobs_T))
    room_T: Floats = np.maximum(-np.expm1(np.minimum(sure_T, 0.0)), least)
    return room_T


def _step(reported_T: Floats) -> float:
    """Return the step of decimals that all reported numbers were rounded to; 0 if they were not."""
    finite_T = reported_T[np.isfinite(reported_T)]
    kept = (digits for digits in DIGITS if np.abs(finite_T - np.round(finite_T, digits)).max(initial=0.0) < 1e-7)
    return 10.0 ** -next(kept, np.inf)


def huber_losses(reported_T: Floats, explained_T: Floats, edge: float, room_T: Floats | float = 1.0) -> Floats:
    """Return (T,) loss per token; impossible tokens beyond a share of `edge` count as IMPOSSIBLE_NATS away.

    room_T: 1 - p, for losses in nats^2 of a logit; without it they are in nats^2.
    """
    impossible = ~np.isfinite(explained_T)
    apart = np.abs(reported_T - np.where(impossible, 0.0, explained_T)) / room_T
    apart = np.where(np.isfinite(apart) & ~impossible, np.minimum(apart, IMPOSSIBLE_NATS), IMPOSSIBLE_NATS)
    loss = np.where(apart <= HUBER_NATS, 0.5 * apart**2, HUBER_NATS * (apart - 0.5 * HUBER_NATS))
    share = float(impossible.mean()) if impossible.size else 0.0
    if share > 0:
        excess = max(0.0, share - edge) / share
        near = 0.5 * HUBER_NATS**2
        far = HUBER_NATS * (IMPOSSIBLE_NATS - 0.5 * HUBER_NATS)
        loss[impossible] = near + excess * (far - near)
    return loss


def refined_temperature(scored: ScoredTokens, start: Semantics, cost_of: Callable[[Floats], float]) -> Semantics:
    """Return the plain temperature near a grid point `start` that has the least cost, by a bounded search in 1/T."""
    nodes = sorted(1.0 / candidate.temperature for candidate in scored.candidates if candidate.plain)
    place = nodes.index(1.0 / start.temperature)
    low, high = nodes[max(place - 1, 0)], nodes[min(place + 1, len(nodes) - 1)]
    if not start.plain or low == high:
        return start

    def cost(inverse: float) -> float:
        logprobs_T = scored.logprobs_under(Semantics(1.0 / inverse))
        return float("inf") if logprobs_T is None else cost_of(logprobs_T)

    # A third of a second to import, and only needed here.
    from scipy.optimize import minimize_scalar

    minimum = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    at_start = scored.logprobs_under(start)
    # Between engines that agree to rounding the search would wander: a better temperature has to be worth something.
    if at_start is None or cost_of(at_start) - minimum.fun < LEAST_FLOOR:
        return start
    return Semantics(float(1.0 / minimum.x))


def fit_report(scored: ScoredTokens, trainer: Semantics, floor_k2: float | None = None, seed: int = 0) -> ReportFit:
    """Fit theta_report. floor_k2: k2 of two runs of the same engine, nats^2; None if it was not measured."""
    reported_T = scored.rollout_logprobs_T
    edge = edge_share(scored)
    room_T = rooms(scored, trainer)
    # Noise of variance s^2 on logits is s^2 (1 - p)^2 of a logprob.
    floor = max(LEAST_FLOOR, floor_k2 or 0.0) / float(np.square(room_T).mean())

    def losses(logprobs_T: Floats) -> Floats:
        return huber_losses(reported_T, logprobs_T, edge, room_T)

    def cost_of(logprobs_T: Floats) -> float:
        return float(losses(logprobs_T).mean())

    candidates = (*scored.candidates, *scored.filters)
    losses_PC = np.empty((scored.clusters, len(candidates)))
    for place, candidate in enumerate(candidates):
        under_T = scored.logprobs_under(candidate)
        assert under_T is not None
        losses_PC[:, place] = scored.per_cluster(losses(under_T))
    order = [candidates[place] for place in np.argsort(losses_PC.sum(axis=0), kind="stable").tolist()]
    # Temperatures between those that are tried come before a filter that only correlates with them.
    plain = next(candidate for candidate in order if candidate.plain)
    meanings = (refined_temperature(scored, plain, cost_of), order[0])
    explained = [scored.logprobs_under(meaning) for meaning in meanings]
    costs = [np.inf if logprobs_T is None else cost_of(logprobs_T) for logprobs_T in explained]
    best, explained_T = meanings[int(np.argmin(costs))], explained[int(np.argmin(costs))]
    assert explained_T is not None
    loss_T = losses(explained_T)
    trainer_loss_T = losses(scored.trainer_logprobs_T)
    loss, trainer_loss = float(loss_T.mean()), float(trainer_loss_T.mean())
    if trainer_loss <= loss or not best.differences(trainer, tolerance=0.0):
        best, loss, loss_T = trainer, trainer_loss, trainer_loss_T
    low, high = paired_interval(scored, trainer_loss_T - loss_T, seed)

    def halved(losses_T: Floats | None) -> NDArray[np.bool_]:
        """Return (K,) whether the loss halves without each part of the prompts, by these losses or by any candidate."""
        tried_PC = losses_PC if losses_T is None else scored.per_cluster(losses_T)[:, None]
        left_KC = sums_left(np.column_stack([tried_PC, scored.per_cluster(trainer_loss_T), scored.lengths_P]))
        above_K = left_KC[:, -2] > TIMES_FLOOR * floor * left_KC[:, -1]
        return np.asarray(above_K & (left_KC[:, :-2].min(axis=1) < HALF * left_KC[:, -2]))

    differs = loss < HALF * trainer_loss and low > 0 and trainer_loss > TIMES_FLOOR * floor
    differs = differs and scored.clusters > 2 and bool(halved(loss_T).all())
    return ReportFit(
        theta=best if differs else trainer,
        best=best,
        differs=differs,
        loss=loss,
        trainer_loss=trainer_loss,
        gain_low=low,
        gain_high=high,
        floor=floor,
        halves_some=bool(halved(None).any()),
    )


def paired_interval(scored: ScoredTokens, values_T: Floats, seed: int = 0) -> tuple[float, float]:
    """Return the 99.9 % percentile interval over prompts of the token mean of a paired difference."""
    sums_PJ = np.stack([scored.per_cluster(values_T), scored.lengths_P], axis=1)
    return resampled(sums_PJ, cluster_weights(scored.clusters, REPLICATES, seed), ratio).percentiles(0.999)
