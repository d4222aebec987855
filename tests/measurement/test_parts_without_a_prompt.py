"""What a part of the mismatch is without each prompt, and that one prompt alone shows nothing."""

import numpy as np
import pytest

from rlaudit.causes.attribution.base_slope import base_slope
from rlaudit.statistics.measurement.excess import fit_excess


def test_the_outliers_without_each_prompt_are_those_of_the_others() -> None:
    rng = np.random.default_rng(0)
    cluster_T = np.repeat(np.arange(10), 200)
    d_T = 0.01 * rng.standard_normal(2000)
    d_T[::100] = np.linspace(0.5, 1.0, 20)
    model = fit_excess(d_T, np.ones(2000), cluster_T, {})
    far2_T = np.where(model.outlier_T, np.square(d_T), 0.0)
    assert model.outlier_T.sum() == 20
    wanted_K = [0.5 * far2_T[cluster_T != left].mean() for left in range(10)]
    np.testing.assert_allclose(model.outliers.left_K, wanted_K, rtol=1e-9)


@pytest.mark.parametrize("clusters", [1, 8])
def test_a_slope_of_one_prompt_is_no_evidence(clusters: int) -> None:
    rng = np.random.default_rng(1)
    leaning_T = rng.standard_normal(800)
    found = base_slope(-leaning_T, leaning_T, np.ones(800), np.arange(800) % clusters)
    assert found.slope == pytest.approx(1.0)
    assert found.part.p_value == 1.0 if clusters == 1 else found.part.p_value < 1e-6
