from dataclasses import replace

import pytest
from flights import ScoredFlights, run_of
from judged_cases import CLEAN, excess, judged

from rlaudit.diagnosis.updates.continuity import judge_continuity
from rlaudit.diagnosis.updates.findings import findings_of
from rlaudit.laboratory.studies.updates.cases import COLD_AFTER, FLIGHT, UpdateCase
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode


@pytest.mark.parametrize(
    ("versions", "continued"),
    # Ended before the update, began and ended after it, and went on over it.
    [([0, 0, 0, 0], 0), ([1], 0), ([0, 1, 1, 1], 32), ([0, 0, 0, 1], 32)],
)
def test_only_requests_with_tokens_before_and_after_an_update_went_on(versions: list[int], continued: int) -> None:
    scored = ScoredFlights().add(run_of(FLIGHT, versions), v0=0.0, v1=0.0)
    scored.add(run_of(COLD_AFTER, [1] * 8, submitted=1), v1=0.0)
    case = UpdateCase(PauseMode.KEEP, clear_cache=True)
    found = judge_continuity(case, scored.tokens(), 1e-3, stale=False)
    assert found.continued == continued
    assert (found.verdict is Verdict.NOT_TESTED) is (continued == 0)


@pytest.mark.parametrize(("low", "high"), [(-0.004, 0.001), (-0.001, 0.004), (0.002, 0.004), (None, 0.004)])
def test_the_noise_control_is_its_largest_effect_in_either_direction(low: float | None, high: float) -> None:
    control = replace(excess(0.0), low=low, high=high)
    stale = replace(CLEAN, verdict=Verdict.MISMATCH, excess=excess(0.1), control=control, cached_tokens=64)
    (found, *_) = findings_of([judged(staleness=stale)])
    assert "a noise control at most 0.004" in found.sure
