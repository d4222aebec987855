"""The evidence against a gate: how often it alarms on a run that is well, and how soon one that is not."""

import numpy as np
import pytest

from rlaudit.statistics.exceedance import Exceedance


def first_above(beyond: np.ndarray, evidence: float) -> int | None:
    test = Exceedance()
    return next((place for place, one in enumerate(beyond, 1) if test.add(bool(one)) >= evidence), None)


@pytest.mark.parametrize("chance", [0.0, 0.3, 0.5])
def test_a_run_that_is_mostly_within_is_alarmed_about_as_seldom_as_was_asked_for(chance: float) -> None:
    rng = np.random.default_rng(4)
    alarms = [first_above(rng.random(400) < chance, 20.0) for _ in range(300)]
    # Binomial: 0.05 of 300 and three standard errors.
    assert sum(one is not None for one in alarms) <= 15 + 12


def test_a_coin_that_knows_the_past_wins_nothing_more() -> None:
    """Beyond twice, then within twice: half of all steps, each surely known before it comes."""
    assert first_above(np.arange(2000) % 4 < 2, 20.0) is None


@pytest.mark.parametrize(("well", "most"), [(0, 8), (100, 20), (1000, 28)])
def test_a_run_that_turns_is_told_soon_after(well: int, most: int) -> None:
    alarm = first_above(np.arange(well + 60) >= well, 20.0)
    assert alarm is not None and well < alarm <= well + most


def test_one_wild_step_among_good_ones_is_one_step() -> None:
    assert first_above(np.arange(3000) % 10 == 0, 20.0) is None
