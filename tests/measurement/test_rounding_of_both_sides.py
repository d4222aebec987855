import numpy as np
import pytest

from rlaudit.statistics.measurement.head_rounding import HeadRounding
from rlaudit.statistics.measurement.lattice import HeadPrecision, LatticeEvidence

ROUNDED = LatticeEvidence(1.0, 200, 1.0, HeadPrecision.BF16, "")


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_what_rounding_of_both_sides_adds_to_the_noise_between_them_is_found_again(noise: float) -> None:
    rng, step = np.random.default_rng(0), 0.25
    first = rng.uniform(0.0, 100.0, 400_000)
    second = first + noise * rng.standard_normal(first.size)
    total = float(np.var(step * np.rint(first / step) - step * np.rint(second / step)))
    explained = HeadRounding(ROUNDED, ROUNDED, step).explained(total)
    assert explained == pytest.approx(total - noise**2, rel=0.05)
