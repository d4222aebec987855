"""Tokens after a resume follow from those before it, or one was dropped."""

import pytest
from flights import ScoredFlights, run_of

from rlaudit.diagnosis.updates.continuity import judge_continuity
from rlaudit.laboratory.studies.updates.cases import COLD_AFTER, FLIGHT, UpdateCase
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode


@pytest.mark.parametrize(
    ("after", "cold", "clear", "stale", "verdict"),
    [
        (0.0, 0.0, True, False, Verdict.MATCH),
        (0.3, 0.0, True, False, Verdict.MISMATCH),
        # New requests get old keys: the cache was not cleared, and those in flight have them as well.
        (0.3, 0.0, True, True, Verdict.NOT_TESTED),
        # The weights are wrong, or the old keys and values are there: a dropped token cannot be told from either.
        (0.3, 0.3, True, False, Verdict.NOT_TESTED),
        (0.3, 0.0, False, False, Verdict.NOT_TESTED),
    ],
)
def test_a_dropped_token_shows_in_the_scores_after_a_cleared_resume(
    after: float, cold: float, clear: bool, stale: bool, verdict: Verdict
) -> None:
    scored = ScoredFlights().add(run_of(FLIGHT, [0, 0, 1, 1, 1, 1]), v0=0.0, v1=after)
    scored.add(run_of(COLD_AFTER, [1] * 8, submitted=1), v1=cold)
    case = UpdateCase(PauseMode.KEEP, clear)
    assert judge_continuity(case, scored.tokens(), 1e-3, stale=stale).verdict is verdict
