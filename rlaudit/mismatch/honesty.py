"""Tests on the tokens themselves: were they drawn from the trainer's distribution, whatever was reported?

They need no reported logprob (except the mean ratio), so they see what no difference of logprobs can: raw logprobs
reported while a filter cut the support agree with the trainer to the last digit.

Each null hypothesis is "sampled from the trainer's distribution". Engine noise of the usual size (k3 up to 1e-2)
leaves p-values small but effects negligible once tokens are many, so a test convicts only with p below ALPHA *and* an
effect beyond what noise can do. The support tests need no such margin: noise moves tokens across the edge of a
filter, which makes them conservative. The PIT test is shown and never convicts: it has no useful effect size.

Peaked distributions (most positions near-deterministic) are the normal case; `c_hat ** N` for the largest mass above a
token rejects a true null there far too often, the product of S_t(c_hat) over positions is exact.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from rlaudit.mismatch.candidates import Semantics
from rlaudit.mismatch.filter_edge import edge_share
from rlaudit.mismatch.pairs import Floats
from rlaudit.mismatch.scored_tokens import ScoredTokens
from rlaudit.mismatch.standard_score import standard_score

TESTS = 8
ALPHA = 1e-4 / TESTS  # Bonferroni
SUPPORT_ALPHA = 1e-6
MEAN_RATIO_EFFECT = 1e-2
TEMPERATURE_EFFECT = 0.03
GREEDY_EFFECT = 0.03
# Mass closer to 1 than single precision sums of 512 terms can tell.
ROUNDED_TO_ONE = 1e-5
# Tilts of the exponential supermartingale that tolerates a few tokens beyond a filter's edge.
TILTS = (1.0, 2.0, 3.0, 4.0, 6.0)
RATIO_CAP = 20.0


@dataclass(frozen=True)
class SemanticTest:
    """One test: what was computed, how surprising it is, how large the effect is, and whether both convict.

    ln_p is the natural logarithm of the p-value, for values that underflow.
    """

    name: str
    statistic: float
    p_value: float
    ln_p: float
    estimate: float | None
    estimate_of: str
    tokens: int
    formula: str
    convicts: bool


def token_tests(scored: ScoredTokens, trainer: Semantics, seed: int = 0) -> tuple[SemanticTest, ...]:
    """All tests of one set of scored tokens against the trainer's distribution, in a fixed order."""
    return (
        mean_ratio_test(scored),
        temperature_score_test(scored, trainer),
        *support_tests(scored, trainer),
        greedy_leak_test(scored),
        pit_test(scored, seed),
    )


def mean_ratio_test(scored: ScoredTokens) -> SemanticTest:
    """Mean importance ratio - 1: zero, however far two engines are apart, when reported logprobs are honest.

    ratio - 1 is then a martingale difference, so tokens count one by one; the larger of that standard error and the
    one over prompts is used. A token outside the trainer's support has ratio 0; as many as engine noise may carry
    across the edge of a replayed filter lower the mean without anybody reporting another number.
    """
    excess_T = np.exp(np.minimum(scored.log_ratio_T, RATIO_CAP)) - 1.0
    excess_T = np.where(np.isfinite(excess_T), excess_T, -1.0)
    mean, z = _z(scored, excess_T)
    impossible = float(np.mean(~np.isfinite(scored.trainer_logprobs_T))) if scored.tokens else 0.0
    margin = MEAN_RATIO_EFFECT + min(impossible, edge_share(scored))
    return _two_sided(
        "mean-ratio", z, mean, "mean ratio - 1", scored.tokens, "z of mean(exp(trainer - rollout) - 1)",
        abs(mean) > margin,
    )  # fmt: skip


def temperature_score_test(scored: ScoredTokens, trainer: Semantics) -> SemanticTest:
    """Derivative of the log-likelihood in 1/T: positive when tokens were drawn sharper than the trainer believes.

    The estimate is one Newton step for the sampling temperature; truncation reads as a lower temperature.
    """
    usable_T = np.isfinite(scored.trainer_logprobs_T)
    score_T = np.where(usable_T, scored.trainer_logprobs_T + scored.entropy_T, 0.0)
    mean, z = _z(scored, score_T)
    variance = float(np.mean(np.square(score_T)))
    inverse_step = mean / variance if variance > 0 else 0.0
    temperature = trainer.temperature / max(0.1, 1.0 + inverse_step)
    return _two_sided(
        "temperature-score", z, temperature, "sampling temperature", scored.tokens, "z of mean(log pi(a) + H(pi))",
        abs(inverse_step) > TEMPERATURE_EFFECT,
    )  # fmt: skip


def greedy_leak_test(scored: ScoredTokens) -> SemanticTest:
    """Share of tokens that are the trainer's first choice, against the mass the trainer gives its first choice."""
    top_T = scored.max_probability_T
    if 1 in scored.grids.top_k:
        top_T = scored.top_k_mass_TG[:, scored.grids.top_k.index(1)].astype(np.float64)  # ties at the top together
    mean, z = _z(scored, (scored.rank_T == 1) - top_T)
    return _two_sided(
        "greedy-leak", z, mean, "share of first choices - their mass", scored.tokens, "z of mean(1[rank 1] - max pi)",
        mean > GREEDY_EFFECT,
    )  # fmt: skip


def pit_test(scored: ScoredTokens, seed: int = 0) -> SemanticTest:
    """Randomised probability integral transform: uniform when tokens follow the trainer. Kolmogorov-Smirnov."""
    jitter_T = np.random.default_rng(seed).random(scored.tokens)
    uniform_T = np.clip(scored.mass_above_T + jitter_T * np.exp(scored.trainer_logprobs_T), 0.0, 1.0)
    if not scored.tokens:
        return _test("pit", 0.0, 0.0, None, "distance from uniform", 0, _PIT_FORMULA, False)
    # scipy.stats takes as long to import as a million tokens to compare, and logs alone never come here.
    from scipy.stats import kstest

    distance, p_value = kstest(uniform_T, "uniform")
    ln_p = math.log(max(float(p_value), 1e-300))
    return _test("pit", distance, ln_p, float(distance), "distance from uniform", scored.tokens, _PIT_FORMULA, False)


_PIT_FORMULA = "Kolmogorov-Smirnov of mass above + V pi(a), V uniform"


def support_tests(scored: ScoredTokens, trainer: Semantics) -> tuple[SemanticTest, ...]:
    """Was nothing sampled beyond an edge although the trainer gives it mass? One test per kind of filter.

    p = prod_t S_t(edge), the chance that no token lies beyond the most extreme one observed. The estimate is the
    hidden filter's setting. A filter that the trainer replays is not hidden from it; its test is then void.
    """
    ratio_T = np.exp(scored.trainer_logprobs_T) / np.maximum(scored.max_probability_T, 1e-30)
    return (
        _support("support-top-p", scored.mass_above_T, scored.nucleus_mass_TG, scored.grids.nucleus),
        _support("support-top-k", scored.rank_T.astype(np.float64), scored.top_k_mass_TG, scored.grids.top_k),
        # min-p cuts from below: negate, so that "beyond" is larger in all three.
        _support("support-min-p", -ratio_T * (1 + 1e-6), scored.min_p_mass_TG, [-m for m in scored.grids.min_p]),
    )


def _support(
    name: str, extremity_T: Floats, mass_TG: NDArray[np.floating], edges: "list[float] | tuple[float, ...]"
) -> SemanticTest:
    formula = "prod of S_t(edge), or its tilted form that tolerates tokens beyond the edge"
    order = np.argsort(edges)
    edge_G = np.asarray(edges, dtype=np.float64)[order]
    if not scored_any(extremity_T, edge_G):
        return _test(name, 0.0, 0.0, None, "edge", len(extremity_T), formula, False)
    beyond_TG = np.clip(1.0 - mass_TG[:, order].astype(np.float64), 0.0, 1.0 - 1e-12)
    beyond_TG[beyond_TG < ROUNDED_TO_ONE] = 0.0
    observed_G = np.array([(extremity_T > edge).sum() for edge in edge_G])
    exact_G = np.where(observed_G == 0, np.log1p(-beyond_TG).sum(axis=0), 0.0)
    # The smallest tabulated edge that holds every token: larger than the observed extreme, so S is too large.
    first = int(np.argmax(observed_G == 0)) if (observed_G == 0).any() else len(edge_G) - 1
    exact = float(exact_G[first])
    tilted_G = np.stack(
        [tilt * observed_G + np.log1p(-beyond_TG * -math.expm1(-tilt)).sum(axis=0) for tilt in TILTS]
    ).min(axis=0) + math.log(len(TILTS) * len(edge_G))
    choice = int(np.argmin(tilted_G))
    if exact <= tilted_G[choice]:
        ln_p, edge, outside = exact, edge_G[first], int(observed_G[first])
    else:
        ln_p, edge, outside = float(tilted_G[choice]), edge_G[choice], int(observed_G[choice])
    ln_p = min(0.0, ln_p + math.log(2.0))
    inside_T = extremity_T[extremity_T <= edge]
    estimate = abs(float(inside_T.max())) if inside_T.size else abs(float(edge))
    return _test(name, outside, ln_p, estimate, "edge", len(extremity_T), formula, ln_p < math.log(SUPPORT_ALPHA))


def scored_any(extremity_T: Floats, edge_G: Floats) -> bool:
    """Whether there are tokens and a grid to look at."""
    return bool(len(extremity_T)) and bool(len(edge_G))


def _z(scored: ScoredTokens, values_T: Floats) -> tuple[float, float]:
    """Mean over tokens, and its z with the larger of the standard errors over tokens and over prompts."""
    if scored.tokens < 2:
        return (float(values_T.mean()) if scored.tokens else 0.0), 0.0
    mean = float(values_T.mean())
    by_token = float(values_T.std(ddof=1)) / math.sqrt(scored.tokens)
    lengths_P = scored.per_cluster(np.ones(scored.tokens))
    apart_P = scored.per_cluster(values_T) - mean * lengths_P
    few = scored.clusters / max(1, scored.clusters - 1)
    by_prompt = math.sqrt(few * float(np.square(apart_P).sum())) / scored.tokens
    error = max(by_token, by_prompt if scored.clusters > 1 else 0.0)
    return mean, standard_score(mean, error, scored.tokens)


def _two_sided(
    name: str, z: float, estimate: float, estimate_of: str, tokens: int, formula: str, effect: bool
) -> SemanticTest:
    ln_p = min(0.0, math.log(2.0) + float(log_ndtr(-abs(z))))
    return _test(name, z, ln_p, estimate, estimate_of, tokens, formula, effect and ln_p < math.log(ALPHA))


def _test(
    name: str, statistic: float, ln_p: float, estimate: float | None, estimate_of: str, tokens: int, formula: str,
    convicts: bool,
) -> SemanticTest:  # fmt: skip
    p_value = math.exp(ln_p) if ln_p > -700 else 0.0
    return SemanticTest(name, float(statistic), p_value, ln_p, estimate, estimate_of, tokens, formula, bool(convicts))
