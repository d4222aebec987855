"""What separates engine and trainer before any update is not blamed on one."""

import pytest
from flights import ScoredFlights, run_of

from rlaudit.laboratory.studies.updates.cases import BEFORE, COLD_AFTER, FLIGHT

MARGIN = 1e-3


@pytest.mark.parametrize(("size", "low", "high"), [(0.0, MARGIN, 1.01 * MARGIN), (0.06, 2e-3, 6e-3)])
def test_rounding_before_the_update_is_allowed_for_after_it(size: float, low: float, high: float) -> None:
    scored = ScoredFlights().add(run_of(BEFORE, [0] * 8), v0=size)
    assert low <= scored.tokens().fit_margin(MARGIN) < high


def test_only_tokens_of_the_first_version_count() -> None:
    scored = ScoredFlights().add(run_of(FLIGHT, [0] * 4 + [1] * 4), v0=0.0)
    scored.add(run_of(COLD_AFTER, [1] * 8), v0=0.5, v1=0.5)
    assert scored.tokens().fit_margin(MARGIN) < 1.01 * MARGIN
