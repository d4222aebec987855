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

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.laboratory.studies.updates.cases import AFTER, COLD_AFTER, FLIGHT, WARM_AFTER
from rlaudit.laboratory.studies.updates.records import Flight
from rlaudit.laboratory.studies.updates.scoring import Scorebook, k3_of, pairs_of
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


def judge_staleness(flights: Sequence[Flight], book: Scorebook, relevant: float) -> Staleness:
    """Judge the requests of one case.

    relevant: an excess k3 in nats that counts however large the step between the versions is.
    """
    complete = [flight for flight in flights if flight.error is None and flight.token_ids]
    runs = {
        run: [flight for flight in complete if flight.run == run] for run in (AFTER, COLD_AFTER, WARM_AFTER, FLIGHT)
    }
    served = [flight for flight in runs[AFTER] if flight.cached_tokens]
    cached = sum(flight.cached_tokens or 0 for flight in runs[AFTER])
    # Tokens in flight have the old keys and values of their requests.
    in_flight = k3_of(pairs_of(runs[FLIGHT], book.under_own_versions, lambda flight: flight.after_update))
    if not runs[AFTER] or not runs[COLD_AFTER] or not runs[WARM_AFTER]:
        why = "the runs after the update did not complete"
        return Staleness(Verdict.NOT_TESTED, why, cached, None, None, in_flight, None, None, None)
    # If too few requests took anything from the cache, such as the second samples of prompts, which share the blocks of
    # the first, the whole run is tested, with its interval.
    tested = pairs_of(served if len(served) >= FEWEST_SEQUENCES else runs[AFTER], book.under_own_versions)
    cold, warm = (pairs_of(runs[run], book.under_own_versions) for run in (COLD_AFTER, WARM_AFTER))
    k3 = all_metrics()["k3"]
    excess, control = contrast(tested, cold, k3), contrast(warm, cold, k3)
    distance = _distance(runs[COLD_AFTER], book)
    margin = min(RELEVANT_SHARE * distance, relevant)
    noise = max(abs(control.high or 0.0), abs(control.low or 0.0))
    counted = any(flight.cached_tokens is not None for flight in runs[AFTER])
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
        flight_margin=margin + max(0.0, _high(k3_of(cold))),
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
        return Verdict.INCONCLUSIVE, f"{source}; added k3 lies {where} all the same, which is another fault"
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


def _distance(cold: Sequence[Flight], book: Scorebook) -> float:
    """Return k3 of new tokens under the version before: the scale for an excess."""
    measured = k3_of(pairs_of(cold, lambda flight: book.logprobs("0", flight)))
    return (measured.value or 0.0) if measured else 0.0


def _high(k3: Measurement | None) -> float:
    return 0.0 if k3 is None else k3.high or k3.value or 0.0
