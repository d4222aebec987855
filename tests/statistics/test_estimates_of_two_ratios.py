import numpy as np
import pytest

from rlaudit.statistics.estimate import estimate_of


@pytest.mark.parametrize(("empty", "value"), [(None, 0.5 - 0.25), (1, -0.25), (3, 0.5)])
def test_a_ratio_of_nothing_counts_nothing_and_the_other_one_stays(empty: int | None, value: float) -> None:
    sums_PJ = np.tile([1.0, 2.0, 1.0, 4.0], (8, 1))
    if empty is not None:
        sums_PJ[:, empty] = 0.0
    assert estimate_of(sums_PJ).value == pytest.approx(value)
