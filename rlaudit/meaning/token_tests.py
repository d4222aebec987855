"""Tests on the tokens themselves: were they drawn from the trainer's distribution?

They need no reported logprob (except the mean ratio), so they see what no difference of logprobs can: raw logprobs
reported while a filter cut the support agree with the trainer to the last digit.

Each null hypothesis is "sampled from the trainer's distribution". Engine noise of the usual size (k3 up to 1e-2)
leaves p-values small but effects negligible once tokens are many, so a test shows it only with p below ALPHA *and* an
effect beyond what noise can do. The support tests need no such margin: noise moves tokens across the edge of a
filter, which makes them conservative.

Peaked distributions (most positions near-deterministic) are the normal case; `c_hat ** N` for the largest mass above a
token rejects a true null there far too often, the product of S_t(c_hat) over positions is exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.meaning.candidates import MIN_P, NUCLEUS, TOP_K, Semantics
from rlaudit.meaning.scored_tokens import ScoredTokens, edge_share
from rlaudit.meaning.sharpness import sharpness
from rlaudit.statistics.estimate import Estimate, estimate_of
from rlaudit.statistics.resample import cluster_sums, sums_left

# Of p = prod S_t, which is exact and cheap to make small: a top_k of 20 that keeps .965 of the mass (TRL 7269) passes
# it in about 400 tokens.
SUPPORT_ALPHA = 1e-6
# Healthy engines publish mean ratios within 1e-3 of 1, raw logprobs and filters that are not replayed beyond 1e-2
# (TRL 7269: .896 at top_p=.8, .965 at top_k=20).
MEAN_RATIO_EFFECT = 1e-2
# Relative: planted temperature errors of .03 were found in simulation, of .01 in 40 % of the worlds.
TEMPERATURE_EFFECT = 0.03
GREEDY_EFFECT = 0.03
# Mass closer to 1 than single precision sums of 512 terms can tell.
ROUNDED_TO_ONE = 1e-5
# Tilts of the exponential supermartingale that tolerates a few tokens beyond a filter's edge.
TILTS = (1.0, 2.0, 3.0, 4.0, 6.0)
RATIO_CAP = 20.0


class WhichTest(StrEnum):
    """Every test of this file. A support test is of one filter."""

    MEAN_RATIO = "mean-ratio"
    TEMPERATURE_SCORE = "temperature-score"
    TOP_P = "support-top-p"
    TOP_K = "support-top-k"
    MIN_P = "support-min-p"
    GREEDY_LEAK = "greedy-leak"


# One false alarm in 10,000 audits, over all tests together (Bonferroni).
ALPHA = 1e-4 / len(WhichTest)
FILTER_OF = {WhichTest.TOP_P: "top_p", WhichTest.TOP_K: "top_k", WhichTest.MIN_P: "min_p"}


@dataclass(frozen=True)
class SemanticTest:
    """One test: how surprising what was found is, how large the effect is, and whether both show it.

    ln_p is the natural logarithm of the p-value, for values that underflow.
    """

    name: WhichTest
    ln_p: float
    estimate: float | None
    estimate_of: str
    # Whichever part of the prompts is left out (`resample.py`).
    shows: bool
    # With some part left out only.
    leans: bool = False

    @property
    def p_value(self) -> float:
        """Return p, 0 if it underflows."""
        return math.exp(self.ln_p) if self.ln_p > -700 else 0.0

    @property
    def on_tokens(self) -> bool:
        """Whether it sees the sampled tokens alone, and may name a cause by them."""
        return self.name is not WhichTest.MEAN_RATIO

    @property
    def filter(self) -> str | None:
        """The parameter whose edge it looks for; None for a test of no filter."""
        return FILTER_OF.get(self.name)


def token_tests(scored: ScoredTokens, trainer: Semantics) -> tuple[SemanticTest, ...]:
    """Return all tests of one set of scored tokens against the trainer's distribution, in a fixed order."""
    return (
        mean_ratio_test(scored),
        temperature_score_test(scored, trainer),
        *support_tests(scored),
        greedy_leak_test(scored),
    )


def mean_ratio_test(scored: ScoredTokens) -> SemanticTest:
    """Mean importance ratio - 1: zero, however far two engines are apart, if reported logprobs are the sampler's.

    ratio - 1 is then a martingale difference, so its squares are a variance as well; the larger of that and of the one
    over prompts is used. A token outside the trainer's support has ratio 0; as many as engine noise may carry across
    the edge of a replayed filter lower the mean although no reported number differs.
    """
    excess_T = np.exp(np.minimum(scored.log_ratio_T, RATIO_CAP)) - 1.0
    excess_T = np.where(np.isfinite(excess_T), excess_T, -1.0)
    excess = _mean(scored, excess_T)
    impossible = float(np.mean(~np.isfinite(scored.trainer_logprobs_T))) if scored.tokens else 0.0
    margin = MEAN_RATIO_EFFECT + min(impossible, edge_share(scored))
    shows, leans = excess.shows(margin, alpha=ALPHA), excess.leans(margin, alpha=ALPHA)
    return SemanticTest(WhichTest.MEAN_RATIO, excess.ln_p, excess.value, "mean ratio - 1", shows, leans)


def temperature_score_test(scored: ScoredTokens, trainer: Semantics) -> SemanticTest:
    """Derivative of the log-likelihood in 1/T: positive when tokens were drawn sharper than the trainer believes.

    The estimate is one Newton step for the sampling temperature; truncation reads as a lower temperature.
    """
    usable_T = np.isfinite(scored.trainer_logprobs_T)
    logprobs_T = np.where(usable_T, scored.trainer_logprobs_T, -scored.entropy_T)
    sharp = sharpness(logprobs_T, scored.entropy_T, scored.cluster_T, scored.clusters)
    temperature = trainer.temperature / max(0.1, 1.0 + sharp.inverse_step)
    shows, leans = sharp.shows(TEMPERATURE_EFFECT, ALPHA), sharp.leans(TEMPERATURE_EFFECT, ALPHA)
    name = WhichTest.TEMPERATURE_SCORE
    return SemanticTest(name, sharp.score.ln_p, temperature, "sampling temperature", shows, leans)


def greedy_leak_test(scored: ScoredTokens) -> SemanticTest:
    """Hold the share of tokens that are the trainer's first choice against the mass that the trainer gives it."""
    top_T = scored.top_k_mass_TG[:, TOP_K.index(1)].astype(np.float64)  # ties at the top together
    excess = _mean(scored, (scored.rank_T == 1) - top_T, np.clip(top_T * (1.0 - top_T), 0.0, None))
    is_above = excess.value > 0
    shows, leans = excess.shows(GREEDY_EFFECT, alpha=ALPHA), excess.leans(GREEDY_EFFECT, alpha=ALPHA)
    description = "share of first choices - their mass"
    return SemanticTest(
        WhichTest.GREEDY_LEAK, excess.ln_p, excess.value, description, is_above and shows, is_above and leans
    )


def support_tests(scored: ScoredTokens) -> tuple[SemanticTest, ...]:
    """Test for each kind of filter whether nothing was sampled beyond an edge although the trainer gives it mass.

    p = prod_t S_t(edge), the chance that no token lies beyond the most extreme one observed. The estimate is the
    hidden filter's setting. A filter that the trainer replays is not hidden from it; its test is then void.
    """
    ratio_T = np.exp(scored.trainer_logprobs_T) / np.maximum(scored.max_probability_T, 1e-30)
    return (
        _support(scored, WhichTest.TOP_P, scored.mass_above_T, scored.nucleus_mass_TG, NUCLEUS),
        _support(scored, WhichTest.TOP_K, scored.rank_T.astype(np.float64), scored.top_k_mass_TG, TOP_K),
        # min-p cuts from below: negate, so that "beyond" is larger in all three.
        _support(scored, WhichTest.MIN_P, -ratio_T * (1 + 1e-6), scored.min_p_mass_TG, [-edge for edge in MIN_P]),
    )


def _support(
    scored: ScoredTokens,
    name: WhichTest,
    extremity_T: Floats,
    mass_TG: NDArray[np.floating],
    edges: Sequence[float],
) -> SemanticTest:
    """Test one filter: p of prod S_t(edge), or of its tilted form, which tolerates tokens beyond the edge."""
    order = np.argsort(edges)
    edge_G = np.asarray(edges, dtype=np.float64)[order]
    if not len(extremity_T) or not len(edge_G):
        return SemanticTest(name, 0.0, None, "edge", False)
    beyond_TG = np.clip(1.0 - mass_TG[:, order].astype(np.float64), 0.0, 1.0 - 1e-12)
    beyond_TG[beyond_TG < ROUNDED_TO_ONE] = 0.0
    # What each prompt adds to the tokens beyond each edge, and to the logarithms of all products.
    observed_PG = _per_cluster(scored, (extremity_T[:, None] > edge_G).astype(np.float64))
    exact_PG = _per_cluster(scored, np.log1p(-beyond_TG))
    tilted_PG = [_per_cluster(scored, np.log1p(-beyond_TG * -math.expm1(-tilt))) for tilt in TILTS]
    sums = (observed_PG, exact_PG, *tilted_PG)
    ln_p, place = _ln_p_of_support(*(sums_PG.sum(axis=0) for sums_PG in sums))
    without_parts = zip(*(sums_left(sums_PG) for sums_PG in sums), strict=True)
    ln_p_left = [_ln_p_of_support(*sums_G)[0] for sums_G in without_parts]
    edge = edge_G[place]
    inside_T = extremity_T[extremity_T <= edge]
    estimate = abs(float(inside_T.max())) if inside_T.size else abs(float(edge))
    ln_p_K = np.array([ln_p, *(ln_p_left if scored.clusters > 1 else [0.0])])
    shown_K = ln_p_K < math.log(SUPPORT_ALPHA)
    shows = bool(shown_K.all())
    return SemanticTest(name, ln_p, estimate, "edge", shows, bool(shown_K.any()) and not shows)


def _ln_p_of_support(observed_G: Floats, exact_G: Floats, *tilted: Floats) -> tuple[float, int]:
    """Return ln p, and the index of the edge it belongs to."""
    # The smallest tabulated edge that holds every token: larger than the observed extreme, so S is too large.
    none_G = observed_G == 0
    first = int(np.argmax(none_G)) if none_G.any() else len(observed_G) - 1
    exact = float(exact_G[first]) if none_G[first] else 0.0
    tilted_G = np.min([tilt * observed_G + sums_G for tilt, sums_G in zip(TILTS, tilted, strict=True)], axis=0)
    tilted_G = tilted_G + math.log(len(TILTS) * len(observed_G))
    choice = int(np.argmin(tilted_G))
    ln_p, place = (exact, first) if exact <= tilted_G[choice] else (float(tilted_G[choice]), choice)
    return min(0.0, ln_p + math.log(2.0)), place


def _per_cluster(scored: ScoredTokens, values_TG: Floats) -> Floats:
    """Return (P, G) sums of each column."""
    return cluster_sums(list(values_TG.T), scored.cluster_T, scored.clusters)


def _mean(scored: ScoredTokens, values_T: Floats, stated_T: Floats | None = None) -> Estimate:
    """Return the mean over tokens; its error is the largest of those over prompts, over tokens, and as stated."""
    columns = [values_T, np.ones(scored.tokens), np.square(values_T)]
    if stated_T is not None:
        columns.append(stated_T)
    sums_PJ = cluster_sums(columns, scored.cluster_T, scored.clusters)
    return estimate_of(sums_PJ[:, :2], least_variance_P=sums_PJ[:, 2:].max(axis=1))
