"""A k3 that only rounding makes is no difference, however much it grows."""

from pathlib import Path

import numpy as np
import pytest

from rlaudit.curves.comparison import CurveMetric, Outcome, compare
from rlaudit.curves.curve import Curve, Run

KL = "rl/kl_new_old"


def run(k3: float, seed: int) -> Run:
    noise = np.random.default_rng(seed).uniform(0.8, 1.2, 30)
    return Run(f"{seed}", (Path("log"),), "JSON lines", "step", {KL: Curve(KL, np.arange(1, 31), k3 * noise)}, ())


def judged(ours: float, theirs: float) -> CurveMetric:
    (result,) = compare([run(ours, 0), run(ours, 1)], [run(theirs, 2)], [KL], 0.05, 0).results
    return result


@pytest.mark.parametrize(("theirs", "outcome"), [(1e-10, Outcome.NOT_SEPARATED), (1e-6, Outcome.SEPARATED)])
def test_what_is_below_rounding_counts_as_rounding_and_the_result_says_so(theirs: float, outcome: Outcome) -> None:
    found = judged(1e-13, theirs)
    assert found.outcome is outcome
    assert any("is rounding" in note for note in found.notes)


def test_where_nothing_is_below_rounding_nothing_is_raised() -> None:
    found = judged(1e-4, 1e-2)
    assert found.outcome is Outcome.SEPARATED
    assert not any("is rounding" in note for note in found.notes)
