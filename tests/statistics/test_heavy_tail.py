import numpy as np
import pytest
from scipy.special import stdtrit

from rlaudit.statistics.heavy_tail import effective_prompts, normal_reach, student_quantiles, widening


def test_prompts_that_add_alike_all_count():
    assert effective_prompts(np.array([1.0, -1.0, 1.0, -1.0])) == 4.0
    assert effective_prompts(np.array([1e300, 0.0, 0.0])) == 1.0
    assert effective_prompts(np.zeros(5)) == 5.0


def test_the_side_of_the_heavy_tail_reaches_further():
    influence_P = np.append(np.full(60, -0.1), [5.0, 1.0])
    down, up = student_quantiles(influence_P, 0.95)
    assert stdtrit(61, 0.975) < down < 1.2 * stdtrit(61, 0.975)
    assert up > 3.0
    assert student_quantiles(-influence_P, 0.95) == (up, down)
    assert widening(influence_P, 0.95) == pytest.approx((down / stdtrit(61, 0.975), up / stdtrit(61, 0.975)))


def test_even_contributions_reach_as_far_as_student_says():
    influence_P = np.tile([1.0, -1.0], 50)
    assert widening(influence_P, 0.95) == pytest.approx((1.0, 1.0))
    assert normal_reach(influence_P, 0.95)[0] == pytest.approx(stdtrit(99, 0.975) * np.sqrt(100 / 99))
