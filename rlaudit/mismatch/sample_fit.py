"""What were the tokens sampled from? Asked of the tokens alone, with the trainer's distribution as the reference.

No reported logprob is needed, so this sees what every difference of logprobs is blind to: raw logprobs with a top-p
sampler give a log ratio of exactly 0 on data that are off-policy all the same.

Covered: another temperature, top-k, top-p, min-p, a leak of greedy choices. Noise of an engine of 1e-3 is harmless.
Not covered: penalties and biases by themselves; they show in the report fit.

The support tests are exact for any sharpness of the distribution: the probability that not one of the tokens would be
more extreme than the most extreme one seen is the product over positions of the mass that was reachable. The shortcut
(largest mass above) ** tokens is not: on peaked distributions it rejects a true null 15 % of the time at 5 %.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from rlaudit.mismatch.candidates import Semantics
from rlaudit.mismatch.pairs import Floats
from rlaudit.mismatch.report_fit import refined_temperature
from rlaudit.mismatch.scored_tokens import ScoredTokens

SUPPORT_P = 1e-6
SCORE_P = 1e-4
# Relative distance of temperatures below which two are one: what 2,000 tokens can tell apart.
SAME_TEMPERATURE = 0.03


@dataclass(frozen=True)
class HonestyTest:
    """One test. `estimate` is of the quantity named in `formula`, None where the test gives none."""

    name: str
    formula: str
    statistic: float
    p_value: float
    estimate: float | None
    tokens: int


@dataclass(frozen=True)
class SampleFit:
    """What the tokens follow. `truncated` and `tempered` say in which way that differs from the trainer's
    distribution."""

    theta: Semantics
    differs: bool
    truncated: bool
    tempered: bool
    tests: tuple[HonestyTest, ...]


def fit_sample(scored: ScoredTokens, trainer: Semantics, requested: Semantics, seed: int = 0) -> SampleFit:
    """Fit theta_sample. `requested`: what the engine was asked for, which names a truncation when it explains it."""
    support = support_tests(scored)
    score = score_test(scored)
    tests = (mean_ratio_test(scored), score, pit_test(scored, seed), greedy_leak_test(scored), *support)
    sharpest = min(support, key=lambda test: test.p_value)
    if sharpest.p_value < SUPPORT_P:
        # What was asked for explains the edge that was found; otherwise the edge itself is the estimate.
        explained = requested.filtered
        theta = requested if explained else _truncated(trainer, sharpest)
        return SampleFit(theta, differs=True, truncated=True, tempered=False, tests=tests)
    sampled_at = _likeliest_temperature(scored, trainer)
    tempered = score.p_value < SCORE_P and abs(sampled_at.temperature / trainer.temperature - 1) > SAME_TEMPERATURE
    return SampleFit(sampled_at if tempered else trainer, tempered, truncated=False, tempered=tempered, tests=tests)


def mean_ratio_test(scored: ScoredTokens) -> HonestyTest:
    """Is the mean importance ratio 1? Under honest logprobs of full support it is exactly, however far the engines are
    apart, and ratio - 1 is a martingale difference, so tokens may be counted one by one."""
    excess_T = np.expm1(np.minimum(scored.log_ratio_T, 300.0))
    spread = math.sqrt(float(np.square(excess_T).sum()))
    z = float(excess_T.sum()) / spread if spread > 0 else 0.0
    return HonestyTest(
        "mean ratio", "mean(ratio)", z, float(2 * stats.norm.sf(abs(z))), 1 + float(excess_T.mean()), scored.tokens
    )


def score_test(scored: ScoredTokens) -> HonestyTest:
    """Sharper or flatter than the trainer's distribution? The derivative of the likelihood in 1/T, over prompts:
    positive for a lower temperature or a truncation, negative for a higher temperature."""
    score_P = scored.per_cluster(scored.trainer_logprobs_T + scored.entropy_T)
    spread = math.sqrt(float(np.square(score_P).sum()))
    z = float(score_P.sum()) / spread if spread > 0 else 0.0
    # Few prompts: the normal's tail is too thin for a sum scaled by its own squares.
    p_value = float(2 * stats.t.sf(abs(z), max(scored.clusters - 1, 1)))
    return HonestyTest(
        "score of temperature", "mean(log pi(a) + H)", z, p_value, float(score_P.sum()) / scored.tokens, scored.tokens
    )


def pit_test(scored: ScoredTokens, seed: int = 0) -> HonestyTest:
    """Randomised probability integral transform, uniform under the null; Kolmogorov-Smirnov. Weak for light
    truncation."""
    position_T = np.random.default_rng(seed).random(scored.tokens)
    uniform_T = np.clip(scored.mass_above_T + position_T * np.exp(scored.trainer_logprobs_T), 0.0, 1.0)
    found = stats.kstest(uniform_T, "uniform")
    return HonestyTest("PIT", "KS of U", float(found.statistic), float(found.pvalue), None, scored.tokens)


def greedy_leak_test(scored: ScoredTokens) -> HonestyTest:
    """Are top tokens taken more often than their probability allows?"""
    top_T, chance_T = scored.rank_T == 1, scored.max_probability_T
    spread = math.sqrt(float((chance_T * (1 - chance_T)).sum()))
    z = float((top_T - chance_T).sum()) / spread if spread > 0 else 0.0
    return HonestyTest(
        "greedy leak",
        "share of rank 1 - mean max pi",
        z,
        float(stats.norm.sf(z)),
        float((top_T - chance_T).mean()),
        scored.tokens,
    )


def support_tests(scored: ScoredTokens) -> tuple[HonestyTest, HonestyTest, HonestyTest]:
    """Exact tests that top-p, top-k and min-p were off, with the hidden setting as the estimate.

    The grid point at or beyond the observed extreme is used, which can only raise the p-value.
    """
    highest_above = float(scored.mass_above_T.max())
    deepest_rank = int(scored.rank_T.max())
    smallest_share = float((np.exp(scored.trainer_logprobs_T) / scored.max_probability_T).min())
    grids = scored.grids
    return (
        _support("top-p", "max mass above", highest_above, grids.nucleus, scored.nucleus_mass_TG),
        _support("top-k", "max rank", deepest_rank, grids.top_k, scored.top_k_mass_TG),
        # min-p keeps less for a larger setting: on the negated axis it is like the others.
        _support("min-p", "min pi / max pi", -smallest_share, tuple(-m for m in grids.min_p), scored.min_p_mass_TG),
    )


def _support(name: str, formula: str, extreme: float, grid: tuple[float, ...], mass_TG: "Floats") -> HonestyTest:
    beyond = [place for place, point in enumerate(grid) if point >= extreme]
    tokens = len(mass_TG)
    if not beyond:
        return HonestyTest(f"support of {name}", formula, 0.0, 1.0, abs(extreme), tokens)
    place = min(beyond, key=lambda candidate: grid[candidate])
    reachable_T = np.clip(mass_TG[:, place].astype(np.float64), 1e-300, 1.0)
    log_p = float(np.log(reachable_T).sum())
    return HonestyTest(f"support of {name}", formula, log_p, math.exp(max(log_p, -700.0)), abs(extreme), tokens)


def _truncated(trainer: Semantics, sharpest: HonestyTest) -> Semantics:
    estimate = sharpest.estimate or 0.0
    if sharpest.name.endswith("top-k"):
        return Semantics(trainer.temperature, top_k=int(estimate))
    if sharpest.name.endswith("min-p"):
        return Semantics(trainer.temperature, min_p=round(estimate, 4))
    return Semantics(trainer.temperature, top_p=max(round(estimate, 4), 1e-4))


def _likeliest_temperature(scored: ScoredTokens, trainer: Semantics) -> Semantics:
    """The plain temperature under which the tokens are likeliest."""

    def cost(logprobs_T: Floats) -> float:
        return -float(logprobs_T.mean())

    plain = [
        (cost(scored.candidate_logprobs_TC[:, place].astype(np.float64)), candidate)
        for place, candidate in enumerate(scored.candidates)
        if candidate.plain
    ]
    if not plain:
        return trainer
    return refined_temperature(scored, min(plain, key=lambda entry: entry[0])[1], cost)
