"""Stale KV: are tokens sampled with new weights computed from keys and values of the old ones?

The five-run protocol, with k3 against the weights that the engine should have by then:
    excess   k3(after) - k3(cold after), same prompts and seeds, only requests that took tokens from the cache
    control  k3(warm after) - k3(cold after): what a warm cache does by itself, without an update in between
    unshared k3 of requests that no cache can hold: new weights that are not loaded would show here too, stale KV not
Convicted only when prompt tokens came from the cache and the interval of the excess lies above the control's and above
a share of the distance between the two versions; acquitted only when it and the control's lie below that share.
Otherwise the test was too small or too noisy, and says so.

Why not compare sampled tokens: one token that differs changes all that follow it. Source of the protocol: lmdeploy
issue 4917. vLLM leaves resetting to its caller on purpose (vllm issue 46125).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.laboratory.studies.updates.cases import AFTER, COLD_AFTER, FLIGHT, UNSHARED, WARM_AFTER
from rlaudit.laboratory.studies.updates.records import Flight
from rlaudit.laboratory.studies.updates.scoring import Scorebook, k3_of, pairs_of
from rlaudit.layers import Verdict
from rlaudit.measurement.contrast import Contrast, contrast
from rlaudit.measurement.measure import Measurement, all_metrics
from rlaudit.statistics.resample import FEWEST_SEQUENCES

# Below this share of k3(new weights, old weights), and below the recipe's margin, an excess does not matter.
RELEVANT_SHARE = 0.01


@dataclass(frozen=True)
class Staleness:
    """What the protocol found in one case.

    cached_tokens: prompt tokens that the requests after the update took from the cache. distance: k3 of tokens of the
    new version under the old one, which is what an engine without the update would show. margin: where excess starts
    to count; flight_margin: where k3 of the tokens in flight does, above that of a cold run.
    """

    verdict: Verdict
    because: str
    cached_tokens: int
    excess: Contrast | None
    control: Contrast | None
    unshared: Measurement | None
    flight: Measurement | None
    distance: float | None
    margin: float | None
    flight_margin: float | None

    @property
    def found(self) -> bool:
        """Whether stale keys and values were convicted."""
        return self.verdict is Verdict.MISMATCH


def judge_staleness(flights: Sequence[Flight], book: Scorebook, relevant: float) -> Staleness:
    """Run the protocol over the requests of one case. `relevant`: an excess k3 in nats that counts however large the
    step between the versions is."""
    runs = {run: _complete(flights, run) for run in (AFTER, UNSHARED, COLD_AFTER, WARM_AFTER, FLIGHT)}
    served = [flight for flight in runs[AFTER] if flight.cached_tokens]
    cached = sum(flight.cached_tokens or 0 for flight in runs[AFTER])
    in_flight = _after_update(runs[FLIGHT], book)
    if not runs[AFTER] or not runs[COLD_AFTER] or not runs[WARM_AFTER]:
        why = "the runs after the update did not complete"
        return Staleness(Verdict.NOT_TESTED, why, cached, None, None, None, in_flight, None, None, None)
    # Where too few took anything from the cache, such as the second sample of a prompt that shares the blocks of the
    # first, the whole run is tested, with its interval.
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
        unshared=k3_of(pairs_of(runs[UNSHARED], book.under_own_versions)),
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
    if excess.low > max(margin, noise) and cached == 0:
        return Verdict.INCONCLUSIVE, f"{source}; excess k3 lies above {margin:.2g} all the same, which is another fault"
    if excess.low > max(margin, noise):
        return Verdict.MISMATCH, f"{source}; excess k3 lies above {margin:.2g} with its whole interval"
    if noise > margin:
        return (
            Verdict.INCONCLUSIVE,
            f"{source}; a warm cache alone moves k3 by up to {noise:.2g}, more than {margin:.2g}",
        )
    if excess.high < margin:
        return Verdict.MATCH, f"{source}; excess k3 lies below {margin:.2g} with its whole interval"
    return Verdict.INCONCLUSIVE, f"{source}; the interval of the excess reaches over {margin:.2g}"


def _complete(flights: Sequence[Flight], run: str) -> list[Flight]:
    return [flight for flight in flights if flight.run == run and flight.error is None and flight.token_ids]


def _distance(cold: Sequence[Flight], book: Scorebook) -> float:
    """k3 of new tokens under the version before: the scale that an excess is held against."""
    measured = k3_of(pairs_of(cold, lambda flight: book.logprobs("0", flight)))
    return (measured.value or 0.0) if measured else 0.0


def _after_update(flights: Sequence[Flight], book: Scorebook) -> Measurement | None:
    """k3 of the tokens that a request in flight got after the update: its own keys and values are the old ones."""
    return k3_of(pairs_of(flights, book.under_own_versions, lambda flight: flight.after_update))


def _high(found: Measurement | None) -> float:
    return 0.0 if found is None else found.high or found.value or 0.0
