"""Stale KV: whether tokens sampled with new weights are computed from keys and values of the old ones.

The five-run protocol, with k3 against the weights that the engine should have by then:
    excess   k3(after) - k3(cold after), same prompts and seeds, only requests that took tokens from the cache
    control  k3(warm after) - k3(cold after): what a warm cache does by itself, without an update in between
Stale only if prompt tokens came from the cache and the interval of the excess lies above the control's and above a
share of the distance between the two versions; clean only if it and the control's lie below that share. Otherwise
the test was too small or too noisy, or something else is wrong, and the verdict is inconclusive.

Sampled tokens are not compared, because one that differs changes all that follow it. Source of the protocol: lmdeploy
issue 4917. vLLM leaves resetting to its caller on purpose (vllm issue 46125).
"""

from dataclasses import dataclass

import numpy as np

from rlaudit.laboratory.studies.updates.cases import AFTER, COLD_AFTER, FLIGHT, WARM_AFTER
from rlaudit.laboratory.studies.updates.scored_tokens import ScoredTokens
from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.contrast import Contrast, contrast
from rlaudit.statistics.measurement.measure import Measurement, all_metrics
from rlaudit.statistics.resample import FEWEST_SEQUENCES

# Below this share of k3(new weights, old weights), and below the recipe's margin, an excess does not matter.
RELEVANT_SHARE = 0.01


@dataclass(frozen=True)
class Staleness:
    """The result of the protocol in one case."""

    verdict: Verdict
    because: str
    # Prompt tokens that the requests after the update took from the cache.
    cached_tokens: int
    excess: Contrast | None
    control: Contrast | None
    flight: Measurement | None
    # k3 of tokens of the new version under the old one, which an engine without the update would show.
    distance: float | None
    # The excess from which it counts.
    margin: float | None
    # k3 of the tokens in flight from which it counts, above that of a cold run.
    flight_margin: float | None

    @property
    def found(self) -> bool:
        """Whether stale keys and values were found."""
        return self.verdict is Verdict.MISMATCH

    @property
    def old_flights(self) -> bool | None:
        """Whether requests in flight go on with old keys and values; None if that is not decided."""
        flight, margin = self.flight, self.flight_margin
        if flight is None or flight.low is None or flight.high is None or margin is None or flight.high <= margin:
            return False
        return True if flight.low > margin else None


def judge_staleness(tokens: ScoredTokens, relevant: float) -> Staleness:
    """Judge the requests of one case.

    relevant: an excess k3 in nats that counts however large the step between the versions is.
    """
    after_T, cold_T, warm_T = (tokens.of(run) for run in (AFTER, COLD_AFTER, WARM_AFTER))
    cached_S = np.array([flight.cached_tokens or 0 for flight in tokens.flights])
    after_S = np.unique(tokens.sequence_T[after_T])
    cached = int(cached_S[after_S].sum())
    # Tokens in flight have the old keys and values of their requests.
    in_flight = tokens.k3(tokens.of(FLIGHT) & tokens.late_T, tokens.right_T)
    if not (after_T.any() and cold_T.any() and warm_T.any()):
        why = "the runs after the update did not complete"
        return Staleness(Verdict.NOT_TESTED, why, cached, None, None, in_flight, None, None, None)
    # If too few requests took anything from the cache, such as the second samples of prompts, which share the blocks of
    # the first, the whole run is tested, with its interval.
    served = (cached_S[after_S] > 0).sum() >= FEWEST_SEQUENCES
    tested_T = after_T & (cached_S > 0)[tokens.sequence_T] if served else after_T
    tested, cold, warm = (tokens.pairs(kept_T, tokens.right_T) for kept_T in (tested_T, cold_T, warm_T))
    k3 = all_metrics()["k3"]
    excess, control = contrast(tested, cold, k3), contrast(warm, cold, k3)
    # Of new tokens under the version before: the scale for an excess.
    apart, fits = (tokens.k3(cold_T, trainer_T) for trainer_T in (tokens.under("0"), tokens.right_T))
    distance = 0.0 if apart is None else apart.value or 0.0
    margin = min(RELEVANT_SHARE * distance, relevant)
    noise = max(abs(control.high or 0.0), abs(control.low or 0.0))
    counted = any(tokens.flights[place].cached_tokens is not None for place in after_S)
    verdict, because = _judge(excess, margin, noise, cached if counted else None)
    return Staleness(
        verdict=verdict,
        because=because,
        cached_tokens=cached,
        excess=excess,
        control=control,
        flight=in_flight,
        distance=distance,
        margin=margin,
        flight_margin=margin + (0.0 if fits is None else max(0.0, fits.high or fits.value or 0.0)),
    )


def _judge(excess: Contrast, margin: float, noise: float, cached: int | None) -> tuple[Verdict, str]:
    """Judge the excess. noise: the farthest end of the control's interval. cached: None if the engine does not say."""
    if excess.low is None or excess.high is None or not excess.reliable:
        return Verdict.INCONCLUSIVE, excess.reason or "no interval"
    source = "the engine does not say what came from the cache"
    if cached is not None:
        source = f"{cached} prompt tokens came from the cache" if cached else "no prompt token came from a cache"
    seen = max(margin, noise)
    # Requests that fit better than those of an empty cache do not have old keys, and weights that make it so are wrong.
    if excess.high < -seen or (excess.low > seen and cached == 0):
        where = f"below -{margin:.2g}" if excess.high < 0 else f"above {margin:.2g}"
        return Verdict.INCONCLUSIVE, f"{source}; added k3 is {where} all the same, which shows another fault"
    if excess.low > seen:
        return Verdict.MISMATCH, f"{source}; added k3 lies above {margin:.2g} with its whole interval"
    if noise > margin:
        return (
            Verdict.INCONCLUSIVE,
            f"{source}; a warm cache alone moves k3 by up to {noise:.2g}, more than {margin:.2g}",
        )
    if excess.high < margin:
        return Verdict.MATCH, f"{source}; added k3 lies below {margin:.2g} with its whole interval"
    return Verdict.INCONCLUSIVE, f"{source}; the interval of added k3 reaches over {margin:.2g}"
