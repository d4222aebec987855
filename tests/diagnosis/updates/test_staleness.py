"""The five-run protocol on requests whose scores are known."""

import pytest
from flights import ScoredFlights, run_of

from rlaudit.diagnosis.updates.staleness import judge_staleness
from rlaudit.laboratory.studies.updates.cases import AFTER, COLD_AFTER, FLIGHT, WARM_AFTER
from rlaudit.layers import Verdict

NEW = [1] * 8
# The margin of a recipe that names none, in nats of k3.
RELEVANT = 1e-3


def protocol(excess: float, cached: int, cold: float = 0.0, warm: float = 0.0, samples: int = 2) -> ScoredFlights:
    scored = ScoredFlights()
    scored.add(run_of(AFTER, NEW, samples, cached_tokens=cached, submitted=0), v1=excess)
    scored.add(run_of(COLD_AFTER, NEW, samples, submitted=1), v1=cold, v0=0.3)
    return scored.add(run_of(WARM_AFTER, NEW, samples, submitted=1, cached_tokens=cached), v1=warm)


def test_old_keys_and_values_are_shown_by_the_requests_that_took_them_from_the_cache() -> None:
    scored = protocol(excess=0.2, cached=3)
    stale = judge_staleness(scored.tokens(), RELEVANT)
    assert stale.verdict is Verdict.MISMATCH
    assert stale.excess is not None and stale.excess.low is not None and stale.excess.low > 0.005
    assert stale.cached_tokens == 3 * 32


def test_a_cache_that_was_cleared_is_clean_with_an_interval() -> None:
    scored = protocol(excess=0.0, cached=0)
    stale = judge_staleness(scored.tokens(), RELEVANT)
    assert stale.verdict is Verdict.MATCH
    assert stale.excess is not None and stale.excess.high is not None and stale.excess.high < 1e-4


def test_weights_that_were_never_loaded_are_not_called_stale_keys() -> None:
    """They move every run alike, so that the excess over a cold run is nothing."""
    scored = protocol(excess=0.3, cached=3, cold=0.3, warm=0.3)
    assert judge_staleness(scored.tokens(), RELEVANT).verdict is not Verdict.MISMATCH


def test_noise_of_a_warm_cache_is_allowed_for() -> None:
    scored = protocol(excess=0.05, cached=3, warm=0.08)
    assert judge_staleness(scored.tokens(), RELEVANT).verdict is not Verdict.MISMATCH


def test_noise_beyond_what_matters_rules_nothing_out() -> None:
    scored = protocol(excess=0.05, cached=3, warm=0.08)
    stale = judge_staleness(scored.tokens(), RELEVANT)
    assert stale.verdict is Verdict.INCONCLUSIVE and "a warm cache alone" in stale.because


def test_excess_without_a_token_from_the_cache_is_another_fault() -> None:
    scored = protocol(excess=0.2, cached=0)
    stale = judge_staleness(scored.tokens(), RELEVANT)
    assert stale.verdict is Verdict.INCONCLUSIVE and "another fault" in stale.because


def test_a_cache_is_not_clean_by_requests_that_fit_better_than_cold_ones() -> None:
    """As where new weights end up in the wrong order: old keys are nearer to the policy than new ones."""
    scored = protocol(excess=0.1, cached=3, cold=0.4, warm=0.4)
    stale = judge_staleness(scored.tokens(), RELEVANT)
    assert stale.verdict is Verdict.INCONCLUSIVE and "another fault" in stale.because


def test_too_few_requests_are_neither_stale_nor_clean() -> None:
    scored = protocol(excess=0.2, cached=3, samples=1)
    stale = judge_staleness(scored.tokens(), RELEVANT)
    assert stale.verdict is Verdict.INCONCLUSIVE
    assert "below 32" in stale.because


def test_a_case_that_ended_early_is_not_tested() -> None:
    scored = ScoredFlights().add(run_of(FLIGHT, [0, 0]), v0=0.0)
    assert judge_staleness(scored.tokens(), RELEVANT).verdict is Verdict.NOT_TESTED


@pytest.mark.parametrize(("size", "above"), [(0.2, True), (0.0, False)])
def test_the_flight_is_judged_by_its_tokens_after_the_update(size: float, above: bool) -> None:
    scored = protocol(excess=0.0, cached=0)
    scored.add(run_of(FLIGHT, [0, 0, 1, 1], 1), v0=0.0, v1=size)
    flight = judge_staleness(scored.tokens(), RELEVANT).flight
    assert flight is not None and flight.tokens == 32
    assert flight.value is not None and (flight.value > 0.01) is above
