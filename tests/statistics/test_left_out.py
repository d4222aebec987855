"""Sums without each part of the prompts."""

import numpy as np
import pytest

from rlaudit.statistics.left_out import MOST_PARTS, part_of, sums_left


@pytest.mark.parametrize("prompts", [1, 2, 5, MOST_PARTS, MOST_PARTS + 1, 300])
def test_every_prompt_is_left_out_once_and_all_others_stay(prompts):
    sums_PJ = np.random.default_rng(prompts).standard_normal((prompts, 3))
    part_P = part_of(prompts)
    left_KJ = sums_left(sums_PJ)
    assert len(left_KJ) == len(np.unique(part_P)) == min(prompts, MOST_PARTS)
    for part, left_J in enumerate(left_KJ):
        np.testing.assert_allclose(left_J, sums_PJ[part_P != part].sum(axis=0), atol=1e-12)


def test_a_prompt_that_holds_nearly_everything_leaves_no_rounding_behind():
    sums_PJ = np.ones((5, 1))
    sums_PJ[2] = 1e30
    assert sums_left(sums_PJ)[2, 0] == 4.0
