"""Sibling agreement: what tokens were drawn from, as shown by the samples of one prompt and one logprob a token.

Samples of one prompt share a context as long as they agree. If a token was drawn from what is reported, it is one of
the tokens that its siblings drew there with just the probability mass that is reported for those. A sampler that is
sharper than its report (temperature below 1 under raw logprobs, a filter that the report leaves out) agrees more often,
a flatter one less. No trainer, entropy or top logprob is needed. With the trainer's logprobs in the report's place, the
same says whether the trainer's distribution is the sampler's.

Let x_1..x_k be the draws in a context, S the set of the draws other than x_i, M the mass of S, l = log p. Each of these
has mean 0 if x_i was drawn from p, for any other draws, and so has every sum of them:

    agreement   1(x_i in S) - M
    sharpness   f(x_i) - sum_S p f - (1 - M) f(other),  where f(x) = l(x) in S, and f(other) = log(1 - M) - a
    odds        1(x_i in S) (l(x_i) - sum_S p l / M)

Sharpness is the derivative of the draws' log-likelihood in 1/T, with a guess for the tokens that no sibling drew: `a`
is how far such tokens lay below log(1 - M) in the other prompts, and a wrong guess costs power and makes no false
alarm. It is the most powerful of the three (twice the z of agreement at 16 samples). A change of 1/T by d moves its
mean by d times the covariance of f and l: within S that is known, and beyond it the tokens drawn there stand for all.
(With the variance of f in its place, a wrong guess would make the change look smaller than it is.) Where a context is
nearly certain all three are nearly 0, and so is their variance. Odds are those between tokens that were kept: a filter
leaves them alone and a temperature does not, which tells the one from the other.

What is estimated is a ratio of sums over prompts. The surplus is the mean agreement of a draw. The step is the sum of
sharpness over that of its covariance with l: one step of Newton's method from 1/T = 1, so a large change of temperature
is a bound. A context counts by its variance, which is the exact weight of the likelihood. The interval is over prompts,
whose contexts have nothing to do with each other; it is never narrower than the variance that the reported
probabilities say, nor than what rounding of float32 moves; Student's distribution stands for few prompts. It names a
cause if it does so with every part of the prompts left out.

A filter is ruled out without any statistics: a sampler that cuts at top-p draws nothing below tokens of more mass than
that, one that cuts at min-p nothing less probable than that share of the first token, one that cuts at top-k nothing
beyond rank k. Mass above, first token and rank are those among the tokens that samples of the prompt drew, which can
only rule out less: one logprob a token says nothing of the tokens that were not drawn.

Not covered: contexts that no two samples share; a top-k of more than the samples of a prompt, but by the mass it cuts;
a penalty so small that what it takes from some tokens it gives to others as likely.
What breaks it, samples that were not drawn one by one from one distribution, is looked for in `broken_groups.py`.
Source: collision tests (Goldreich & Ron 2000; Batu et al. 2000); the missing mass of Good (1953), whose leave-one-out
form the agreement is, with the mass reported instead of estimated.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats, Integers
from rlaudit.statistics.estimate import Estimate, estimate_of
from rlaudit.statistics.measurement.metric import FLOAT32_RESOLUTION
from rlaudit.tokens.token_batch import NO_TOKEN, TokenBatch

# Half a step of a float32 just below 1: less room than that is rounding.
LEAST_ROOM = 2.0**-25
# What tokens that no sibling drew lie below log(1 - M) where no other prompt has one: a tail of e^2 equal tokens.
FIRST_GUESS = 2.0
# Nats that a token counts for at most where samples go on agreeing: under a hidden penalty they agree on a few tokens
# that are reported as most improbable, copies on many.
MOST_SURPRISE = 1.0
# The trade: where siblings hold less of a context, one draw that they have too would outweigh all others.
FLAT = 0.02
# Shares of every context, from what no limit reaches down to all of it.
CUTS = np.geomspace(2e-3, 1.0, 28)
# So many prompts have to show a token beyond a filter's edge: engine noise moves one across, now and then.
WITNESSES = 3


@dataclass(frozen=True, eq=False)
class SharedDraws:
    """N draws in contexts that at least two samples share. Contexts are numbered; logprobs are in nats."""

    # 0..prompts-1, what intervals resample.
    prompt_N: Integers
    context_N: Integers
    token_N: Integers
    # -log of what is reported for the tokens that led to the context, of each MOST_SURPRISE at most.
    surprise_N: Floats
    rollout_logprobs_N: Floats
    trainer_logprobs_N: Floats
    prompts: int

    def of_prompts(self, kept_P: NDArray[np.bool_]) -> "SharedDraws":
        """Return only the draws of these prompts, which keep their numbers."""
        kept_N = kept_P[self.prompt_N]
        return self if kept_N.all() else replace(self, **{name: getattr(self, name)[kept_N] for name in _BY_DRAW})


_BY_DRAW = tuple(field.name for field in fields(SharedDraws) if field.name.endswith("_N"))


@dataclass(frozen=True, eq=False)
class Agreement:
    """Draws against one side's logprobs."""

    # Share of draws that a sibling drew too, less the mass that the logprobs give those.
    excess: Estimate
    # Relative change of 1/T that the sharpness says, positive where tokens are sharper.
    step: Estimate
    # The same from the odds of kept tokens alone.
    odds: Estimate
    # Of the mass c that a filter takes of each context, c / (1 - c), on average over draws.
    cut: Estimate
    # Their share of whose contexts siblings hold too little to tell.
    flat: float
    # The step that a filter makes which cuts the shares CUTS of every context, as far as it has so much that no sibling
    # drew.
    cut_steps_G: Floats
    # What it cuts then, on average over draws.
    cut_masses_G: Floats
    # No top-p below it was in force.
    reach: float
    # Nor a min-p above.
    floor: float
    # Nor a top-k below.
    rank: int
    draws: int
    prompts: int


def shared_draws(batch: TokenBatch, group_S: Integers) -> SharedDraws | None:
    """Return all draws whose context another sample of the group shares; None if there are none, or no token ids.

    Tokens that were not sampled (tools' output, where the loss does not count) are part of contexts and no draws.
    """
    if (batch.token_id_T == NO_TOKEN).any():
        return None
    version_T = batch.token_columns.get("rollout_version", np.zeros(batch.tokens))
    _, prompt_S = np.unique(batch.prompt_S, return_inverse=True)
    context_S = group_S
    alive_S = np.arange(batch.sequences)
    surprise_S = np.zeros(batch.sequences)
    contexts, shared = 0, []
    for depth in range(int(batch.lengths_S.max(initial=0))):
        going = batch.lengths_S[alive_S] > depth
        alive_S, context_S = alive_S[going], context_S[going]
        row_N = batch.offsets[alive_S] + depth
        # Other weights are another sampler: their draws are no siblings of these.
        context_S, size = _numbered(context_S, version_T[row_N])
        together = size[context_S] > 1
        alive_S, context_S, row_N = alive_S[together], context_S[together], row_N[together]
        if not alive_S.size:
            break
        drawn = batch.counts_T[row_N]
        shared.append((row_N[drawn], context_S[drawn] + contexts, alive_S[drawn], surprise_S[alive_S[drawn]]))
        contexts += len(size)
        surprise_S[alive_S[drawn]] += np.minimum(-np.nan_to_num(batch.rollout_logprobs_T[row_N[drawn]]), MOST_SURPRISE)
        context_S, _ = _numbered(context_S, batch.token_id_T[row_N])
    if not any(row_N.size for row_N, *_ in shared):
        return None
    row_N, context_N, sequence_N, surprise_N = (np.concatenate(parts) for parts in zip(*shared, strict=True))
    return SharedDraws(
        prompt_N=prompt_S[sequence_N],
        context_N=context_N,
        token_N=batch.token_id_T[row_N],
        surprise_N=surprise_N,
        rollout_logprobs_N=batch.rollout_logprobs_T[row_N],
        trainer_logprobs_N=batch.trainer_logprobs_T[row_N],
        prompts=int(prompt_S.max()) + 1,
    )


def _numbered(first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """Return the numbers of the pairs, from 0, and how often each occurs."""
    _, second = np.unique(second, return_inverse=True)
    pairs = first * (second.max(initial=0) + 1) + second
    _, numbers, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    return numbers, counts


def agreement(draws: SharedDraws, logprobs_N: Floats) -> Agreement | None:
    """Return whether the draws are from the distribution whose logprobs are `logprobs_N`.

    None if no context has two draws with a logprob.
    """
    table = _table(draws, logprobs_N)
    if table is None:
        return None
    inside_R = ~table.alone_R
    excess_R, mass_variance_R = inside_R - table.mass_R, table.mass_R * table.room_R
    excess = table.estimate(excess_R, np.ones(table.rows), mass_variance_R)
    # A top-k cuts where contexts are flat and siblings hold little of the mass: agreement hardly moves there.
    known_R = np.maximum(table.mass_R, FLAT)
    other_R = np.log(table.room_R) - _below(table)
    expected_R = table.mass_l_R + table.room_R * other_R
    deviation_R = np.where(inside_R, table.logprob_R, other_R) - expected_R
    inner_R = table.mass_ll_R - 2.0 * expected_R * table.mass_l_R + np.square(expected_R) * table.mass_R
    variance_R = np.maximum(inner_R + table.room_R * np.square(other_R - expected_R), 0.0)
    slope_R = inner_R + np.where(inside_R, 0.0, deviation_R * (table.logprob_R - expected_R))
    step = table.estimate(deviation_R, slope_R, variance_R)
    cut_GR = [np.minimum(share, table.room_R) for share in CUTS.tolist()]
    gained_R = np.maximum(expected_R - other_R, 0.0) * table.times_R
    slopes = max(float((slope_R * table.times_R).sum()), LEAST_ROOM)
    mass_R = np.maximum(table.mass_R, LEAST_ROOM)
    mean_R = table.mass_l_R / mass_R
    spread_R = np.where(inside_R, np.maximum(table.mass_ll_R / mass_R - np.square(mean_R), 0.0), 0.0)
    odds = table.estimate(inside_R * (table.logprob_R - mean_R), spread_R, spread_R)
    return Agreement(
        excess=excess,
        step=step,
        odds=odds,
        cut=table.estimate(excess_R / known_R, np.ones(table.rows), mass_variance_R / np.square(known_R)),
        flat=float(np.average(1.0 - np.minimum(table.mass_R / known_R, 1.0), weights=table.times_R)),
        cut_steps_G=np.array([float((cut_R * gained_R).sum()) for cut_R in cut_GR]) / slopes,
        cut_masses_G=np.array([float(np.average(cut_R, weights=table.times_R)) for cut_R in cut_GR]),
        reach=table.witnessed(table.above_R),
        floor=-table.witnessed(-table.relative_R),
        rank=int(max(table.witnessed(table.rank_R), 0.0)),
        draws=int(table.times_R.sum()),
        prompts=len(np.unique(table.prompt_R)),
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """R distinct tokens, context by context."""

    prompt_R: Integers
    # How many drew it.
    times_R: Integers
    logprob_R: Floats
    # mass_R, mass_l_R, mass_ll_R: sums of p, p l and p l^2 over what the others drew, as each draw of the token finds
    # it.
    mass_R: Floats
    mass_l_R: Floats
    mass_ll_R: Floats
    # Mass of the tokens drawn here that are more probable.
    above_R: Floats
    # How many those are, and one.
    rank_R: Floats
    # Its p over the largest.
    relative_R: Floats
    prompts: int

    @property
    def rows(self) -> int:
        return len(self.times_R)

    @property
    def alone_R(self) -> NDArray[np.bool_]:
        alone_R: NDArray[np.bool_] = self.times_R == 1
        return alone_R

    @property
    def room_R(self) -> Floats:
        return 1.0 - self.mass_R

    def by_prompt(self, values_R: Floats) -> Floats:
        """Return (P,) sums over draws."""
        return np.bincount(self.prompt_R, values_R * self.times_R, self.prompts).astype(np.float64)

    def estimate(self, deviations_R: Floats, weights_R: Floats, variances_R: Floats) -> Estimate:
        """Return the sum of deviations over that of weights; both a value for each draw."""
        sums_PJ = np.stack([self.by_prompt(deviations_R), self.by_prompt(weights_R)], axis=1)
        return estimate_of(sums_PJ, least_variance_P=self.by_prompt(variances_R), resolution=FLOAT32_RESOLUTION)

    def witnessed(self, values_R: Floats) -> float:
        """Return the largest value that WITNESSES prompts reach; -inf if there are fewer."""
        best_P = np.full(self.prompts, -np.inf)
        np.maximum.at(best_P, self.prompt_R, values_R)
        return float(np.sort(best_P)[-WITNESSES]) if self.prompts >= WITNESSES else -np.inf


def _table(draws: SharedDraws, logprobs_N: Floats) -> _Table | None:
    finite_N = np.isfinite(logprobs_N)
    order = np.flatnonzero(finite_N)[np.lexsort((draws.token_N[finite_N], draws.context_N[finite_N]))]
    context_N, token_N = draws.context_N[order], draws.token_N[order]
    if not order.size:
        return None
    begins = np.append(True, (np.diff(context_N) != 0) | (np.diff(token_N) != 0))
    row_N = np.cumsum(begins) - 1
    times_R = np.bincount(row_N)
    # What one token is reported with by several samples differs by the engine's noise.
    logprob_R = np.minimum(np.bincount(row_N, logprobs_N[order]) / times_R, 0.0)
    context_R, prompt_R = context_N[begins], draws.prompt_N[order][begins]
    shared = np.bincount(context_R, times_R)[context_R] > 1
    if not shared.any():
        return None
    times_R, logprob_R, prompt_R = times_R[shared], logprob_R[shared], prompt_R[shared]
    _, context_R = np.unique(context_R[shared], return_inverse=True)
    p_R = np.exp(logprob_R)
    alone_p_R = p_R * (times_R == 1)
    masses = [np.bincount(context_R, p_R * np.power(logprob_R, power))[context_R] for power in range(3)]
    others = [mass_R - alone_p_R * np.power(logprob_R, power) for power, mass_R in enumerate(masses)]
    _, prompt_R = np.unique(prompt_R, return_inverse=True)
    above_R, rank_R = _above(context_R, p_R)
    return _Table(
        prompt_R=prompt_R,
        times_R=times_R,
        logprob_R=logprob_R,
        mass_R=np.clip(others[0], 0.0, 1.0 - LEAST_ROOM),
        mass_l_R=others[1],
        mass_ll_R=others[2],
        above_R=above_R,
        rank_R=rank_R,
        relative_R=p_R / np.maximum.reduceat(p_R, _firsts(context_R))[context_R],
        prompts=int(prompt_R.max()) + 1,
    )


def _firsts(context_R: Integers) -> Integers:
    firsts: Integers = np.searchsorted(context_R, np.arange(context_R[-1] + 1))
    return firsts


def _above(context_R: Integers, p_R: Floats) -> tuple[Floats, Floats]:
    """Return (R,) mass of the more probable tokens of each token's context, and (R,) its place among them, from 1."""
    order = np.lexsort((-p_R, context_R))
    sums_R = np.cumsum(p_R[order]) - p_R[order]
    first_R = _firsts(context_R)[context_R]
    above_R, rank_R = np.empty(len(p_R)), np.empty(len(p_R))
    above_R[order] = sums_R - sums_R[first_R]
    rank_R[order] = np.arange(len(p_R)) - first_R + 1
    return above_R, rank_R


def _below(table: _Table) -> Floats:
    """Return (R,) how far what no sibling drew lay below log(1 - M) in all other prompts than the row's."""
    alone_R = table.alone_R.astype(float)
    far_P = table.by_prompt(alone_R * (np.log(table.room_R) - table.logprob_R))
    many_P = table.by_prompt(alone_R)
    others_P = many_P.sum() - many_P
    below_P = np.where(others_P > 0, (far_P.sum() - far_P) / np.maximum(others_P, 1.0), FIRST_GUESS)
    return np.maximum(below_P, 0.0)[table.prompt_R]
