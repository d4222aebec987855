"""When a candidate leaves the noise band of its reference: a sequential test over the whole curve.

Statistic: at each step, for windows of the last 1, 2, 3, 4, 6, 8, ... steps, the mean difference between candidate
and reference, each the mean of its seeds, over its standard deviation under the noise model; the largest of them. A
single step counts for at most `CLIP` of its standard deviations, so that one spike is never a separation.

Threshold: the level that only a share `alpha` of curves *without* a change ever reach, anywhere on their way, found
by simulating pairs of runs from all noise models the reference does not rule out. So a false alarm over the whole
curve, not at each step, has probability alpha. It holds for one look at a finished curve: watching a growing run and
testing again after every step is another, larger, chance of alarm.

Assumptions, printed with every report: reference and candidate begin at the same checkpoint and share the trend;
points are evenly spaced; noise (of the logarithm where it spikes upwards) is an AR(1) of steps plus a slow AR(1) of
seeds, whose size may change smoothly along the run; with one reference, see `noise_model.py`. Only the mean is
tested; a change of spread alone is shown as a ratio and not judged.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from rlaudit.arrays import Floats
from rlaudit.curves.noise_model import covariance, fit_noise, noise_grid, simulate

CLIP = 4.0
# The first point is read by itself only if it is beyond this many of its own thresholds: a short reference measures
# slow noise badly, and no further point corrects it. Of 1,800 pairs of seeds with six kinds of noise 26 were so at an
# alpha of 0.05, and 7 of them had separated as well.
FIRST_BEYOND = 1.2
# Robust standard deviations beyond which a value of the reference is broken rather than noisy.
OUTLIER = 12.0
# Skewness of the reference's noise from which a positive metric is tested on its logarithm.
SKEWED = 1.0
LARGEST_LOG = 700.0
# Share of the largest value below which what is left after the trend is rounding.
NO_NOISE = 1e-12
TINY = 1e-300
SIMULATIONS = 1000
# The threshold is right on average over the noise models that a reference leaves possible. Where the true one is slow
# and a few seeds happened to stay together, alarms were measured at up to twice alpha: so alpha is halved.
CAUTION = 2.0
# Longer curves are averaged over consecutive steps; the report says over how many.
LONGEST = 1000
SHORTEST = 20
TAIL = 0.1
BLOCKS = 8
# Shares of the run at which the cubic pieces of its trend meet: more of them early, where learning is fast.
KNOTS = (0.02, 0.06, 0.14, 0.28, 0.5, 0.75)


@dataclass(frozen=True)
class Separation:
    """What the test found on one metric; places are indices into the steps that were compared."""

    # First place at which the statistic is above the threshold; None if there is none.
    detected: int | None
    # Begin of the window with the strongest evidence at that place.
    onset: int | None
    statistic: float
    # At the end of the curve.
    last_statistic: float
    threshold: float
    # The band around the reference that single steps of a curve without a change leave nowhere, with probability
    # 1 - alpha.
    low_N: Floats
    high_N: Floats
    # Whether the test was made on logarithms.
    in_logs: bool
    # Step-to-step noise of the candidate over the reference's.
    noise_ratio: float
    # The smallest lasting difference that would be seen at the end of the curve; a factor if in_logs.
    resolution: float
    # Whether the first point alone is apart, which needs no look at the others.
    at_first: bool


def separate(
    reference_RN: Floats, candidate_CN: Floats, alpha: float, from_zero: bool, generator: np.random.Generator
) -> Separation:
    """Test one metric: R seeds of the reference, C of the candidate, or (N,) of one.

    Raises ValueError if the reference has no noise to measure, or there are too few points.
    """
    candidate_CN = np.atleast_2d(candidate_CN)
    seeds, length = reference_RN.shape
    theirs = len(candidate_CN)
    if length < SHORTEST:
        raise ValueError(f"{length} points; at least {SHORTEST} are needed")
    several = seeds > 1
    in_logs = _worth_logarithms(reference_RN, candidate_CN)
    if in_logs:
        reference_RN, candidate_CN = np.log(reference_RN), np.log(candidate_CN)
    trend_NQ = _trend_columns(length)
    noise = _contrasts(reference_RN).T if several else _without_trend(reference_RN.T, trend_NQ)
    scale_N = None if np.ptp(noise) <= NO_NOISE * np.abs(reference_RN).max() else _scale(noise)
    if scale_N is None:
        raise ValueError(
            "the reference's seeds are identical" if several else "the reference is all trend and no noise"
        )
    model = fit_noise(
        _clipped(noise / scale_N[:, None]),
        np.empty((length, 0)) if several else trend_NQ,
        noise_grid(length, several, from_zero),
    )
    noise_ratio = _step_noise(candidate_CN.T) / max(_step_noise(reference_RN.T), TINY)
    inflation = max(1.0, noise_ratio) if noise_ratio > 1.25 else 1.0
    share = inflation**2 / theirs + 1.0 / seeds
    cov_NN = share * covariance(model)
    windows = _windows(length)
    prefix = np.pad(cov_NN.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    spread_WN = np.stack([_spread(prefix, window) for window in windows])
    whiten = np.linalg.cholesky(cov_NN)
    simulated = simulate(model, SIMULATIONS, seeds, generator, theirs) * np.sqrt(share / (1 / theirs + 1 / seeds))
    maxima = _statistic(simulated, windows, spread_WN, whiten).max(axis=0)
    threshold = _upper_quantile(maxima, alpha / CAUTION)
    of_first = FIRST_BEYOND * _upper_quantile(np.abs(simulated[0]), alpha / CAUTION)
    centre_N = reference_RN.mean(axis=0)
    difference_N = (candidate_CN.mean(axis=0) - centre_N) / scale_N
    path_N = _statistic(difference_N[:, None], windows, spread_WN, whiten)[:, 0]
    above = np.flatnonzero(path_N > threshold)
    detected = int(above[0]) if above.size else None
    reach_N = threshold * np.sqrt(np.diag(cov_NN)) * scale_N
    smallest = float(threshold * (spread_WN[:, -1] / windows).min() * scale_N[-1])
    low_N, high_N = centre_N - reach_N, centre_N + reach_N
    return Separation(
        detected=detected,
        onset=None if detected is None else _onset(difference_N, prefix, detected),
        statistic=float(path_N.max()),
        last_statistic=float(path_N[-1]),
        threshold=threshold,
        low_N=np.exp(low_N) if in_logs else low_N,
        high_N=np.exp(np.minimum(high_N, LARGEST_LOG)) if in_logs else high_N,
        in_logs=in_logs,
        noise_ratio=noise_ratio,
        resolution=float(np.exp(min(smallest, LARGEST_LOG))) if in_logs else smallest,
        at_first=bool(abs(difference_N[0]) > of_first),
    )


def separates_from_constant(reference_RN: Floats, candidate_CN: Floats, alpha: float) -> tuple[int, int] | None:
    """Test a reference that never moves: a sign test, because there is no noise to measure a band from.

    A clip fraction that is 0 at every step of the reference gives no noise model, and a candidate that clips is
    different all the same. Were candidate and reference seeds exchangeable, each step at which as many runs as there
    are candidates differ from the others would pick just those with probability 1 / (runs over candidates). Assumed:
    such steps are independent.

    Return the place at which enough steps differ, and that of the first that does; None if there are not enough. With
    several seeds of the candidate a step differs if all of them do.
    """
    level = reference_RN.flat[0]
    candidate_CN = np.atleast_2d(candidate_CN)
    differing = np.flatnonzero((~np.isclose(candidate_CN, level, rtol=1e-9, atol=0.0)).all(axis=0))
    ways = math.comb(len(reference_RN) + len(candidate_CN), len(candidate_CN))
    needed = math.ceil(math.log(1.0 / alpha) / math.log(ways))
    return (int(differing[needed - 1]), int(differing[0])) if differing.size >= needed else None


def _trend_columns(length: int) -> Floats:
    """Return (N, Q) orthonormal columns that span the trends of a run of N points: splines of few degrees of freedom.

    There are fewer columns if there are few points.
    """
    place = np.linspace(0.0, 1.0, length)
    knots = [knot for knot in KNOTS if knot * length >= 4]
    columns = [place**power for power in range(4)] + [np.maximum(place - knot, 0.0) ** 3 for knot in knots]
    orthonormal, _ = np.linalg.qr(np.stack(columns, axis=1))
    return np.asarray(orthonormal, dtype=np.float64)


def _worth_logarithms(reference_RN: Floats, candidate_CN: Floats) -> bool:
    """Return whether a positive metric has noise that spikes upwards and grows with its level.

    Divergences and gradient norms do. If noise spikes without growing with the level, logarithms make it loud wherever
    the level is low.
    """
    if reference_RN.min() <= 0 or candidate_CN.min() <= 0:
        return False
    trend_NQ = _trend_columns(reference_RN.shape[1])
    plain, logs = (_without_trend(values.T, trend_NQ) for values in (reference_RN, np.log(reference_RN)))
    if np.ptp(plain) <= NO_NOISE * np.abs(reference_RN).max():
        # What is left is rounding, whose shape is the processor's.
        return False
    return _skewness(plain) > max(SKEWED, 2 * abs(_skewness(logs))) and _unevenness(logs) <= _unevenness(plain) + 0.05


def _skewness(series_NS: Floats) -> float:
    spread = series_NS.std()
    return float(np.mean((series_NS / spread) ** 3)) if spread > 0 else 0.0


def _unevenness(series_NS: Floats) -> float:
    """Return how much the size of the step noise differs between parts of the run: variance of its logarithm."""
    moves_N = np.abs(np.diff(series_NS, axis=0)).mean(axis=1)
    sizes = np.array([np.median(block) for block in np.array_split(moves_N, BLOCKS)])
    return float(np.var(np.log(np.maximum(sizes, max(float(sizes.max()), TINY) * 1e-6))))


def _contrasts(reference_RN: Floats) -> Floats:
    """Return (R - 1, N) orthonormal contrasts: independent series of one seed's noise, without the shared trend."""
    seeds = len(reference_RN)
    rows = [np.r_[np.ones(row), -float(row), np.zeros(seeds - row - 1)] for row in range(1, seeds)]
    return np.asarray(np.stack([row / np.linalg.norm(row) for row in rows]) @ reference_RN, dtype=np.float64)


def _without_trend(series_NS: Floats, trend_NQ: Floats) -> Floats:
    return series_NS - trend_NQ @ (trend_NQ.T @ series_NS)


def _step_noise(series_NS: Floats) -> float:
    """Return the size of the differences between neighbouring steps, not moved by a few jumps."""
    moves = np.abs(np.diff(series_NS, axis=0))
    return float(np.minimum(moves, 4 * np.median(moves) if np.median(moves) > 0 else np.inf).mean())


def _scale(series_NS: Floats) -> Floats | None:
    """Return (N,) the smoothed size of the step noise along the run; None if there is no noise."""
    moves_N = np.abs(np.diff(series_NS, axis=0)).mean(axis=1)
    if moves_N.max() <= 0:
        return None
    length = len(series_NS)
    if length < 8 * BLOCKS:
        return np.full(length, float(moves_N.mean()))
    blocks = np.array_split(np.minimum(moves_N, np.quantile(moves_N, 0.95)), BLOCKS)
    sizes = np.array([block.mean() for block in blocks])
    sizes = np.maximum(sizes, sizes.max() / 50)
    middle = (np.arange(BLOCKS) + 0.5) / BLOCKS
    logs = np.polyval(np.polyfit(middle, np.log(sizes), 2), middle)
    # A change of size that the blocks' own scatter explains is shrunk away: a parabola takes 2 of their 7 degrees.
    scatter = np.mean([np.var(block) / size**2 / len(block) for block, size in zip(blocks, sizes, strict=True)])
    kept = max(0.0, 1.0 - 2.0 * scatter * (2 / 7) / max(float(np.var(logs)), 1e-12))
    inside = np.interp((np.arange(length) + 0.5) / length, middle, kept * logs + (1 - kept) * logs.mean())
    return np.asarray(np.exp(inside), dtype=np.float64)


def _clipped(series_NS: Floats) -> Floats:
    """Return each series cut far out, so that one broken value does not widen the band of the whole run."""
    centre: Floats = np.median(series_NS, axis=0)
    spread = 1.4826 * np.median(np.abs(series_NS - centre), axis=0)
    reach = np.where(spread > 0, OUTLIER * spread, np.inf)
    return np.asarray(np.clip(series_NS, centre - reach, centre + reach), dtype=np.float64)


def _windows(length: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, ... up to the whole run."""
    sizes = {int(size) for power in range(length.bit_length()) for size in (2**power, 1.5 * 2**power)}
    return sorted({size for size in sizes if size <= length} | {length})


def _spread(prefix: Floats, window: int) -> Floats:
    """Return (N,) standard deviation of the sum over the last `window` steps, infinite before there are so many."""
    ends = np.arange(window, len(prefix))
    starts = ends - window
    variance = prefix[ends, ends] - 2 * prefix[ends, starts] + prefix[starts, starts]
    return np.concatenate([np.full(window - 1, np.inf), np.sqrt(variance)])


def _statistic(difference_NB: Floats, windows: list[int], spread_WN: Floats, whiten: Floats) -> Floats:
    """Return (N, B) the largest standardised window mean that ends at each place."""
    single = spread_WN[0][:, None]
    clipped = np.clip(difference_NB, -CLIP * single, CLIP * single)
    surprise = np.clip(solve_triangular(whiten, clipped, lower=True, check_finite=False), -CLIP, CLIP)
    totals, surprises = (np.pad(moving.cumsum(axis=0), ((1, 0), (0, 0))) for moving in (clipped, surprise))
    largest = np.zeros_like(clipped)
    for window, spread_N in zip(windows, spread_WN, strict=True):
        ends = slice(window - 1, None)
        for sums, spread in ((totals, spread_N[ends, None]), (surprises, np.sqrt(window))):
            np.maximum(largest[ends], np.abs(sums[window:] - sums[:-window]) / spread, out=largest[ends])
    return largest


def _upper_quantile(maxima: Floats, alpha: float) -> float:
    """Return the level exceeded with probability alpha.

    The tail of a maximum of Gaussian-like statistics falls exponentially in its square, which steadies levels that
    few simulations reach.
    """
    squares = np.square(maxima)
    start = np.quantile(squares, 1 - TAIL)
    excess = float((squares[squares > start] - start).mean())
    return float(np.sqrt(start + excess * np.log(TAIL / alpha)))


def _onset(difference_N: Floats, prefix: Floats, detected: int) -> int:
    """Return the start of the window ending at `detected` that speaks loudest for a change."""
    end, starts = detected + 1, np.arange(detected + 1)
    spread = np.sqrt(prefix[end, end] - 2 * prefix[end, starts] + np.diag(prefix)[starts])
    sums = np.r_[0.0, difference_N.cumsum()]
    return int(np.argmax(np.abs(sums[end] - sums[starts]) / spread))
