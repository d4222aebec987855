"""Decisions about the meaning just on either side of their limits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rlaudit.meaning.limits import suspicious
from rlaudit.meaning.log_ratio_shape import follows_mask
from rlaudit.meaning.log_statistics import equally_likely


@dataclass(eq=False)
class Seen:
    """The evidence of these log ratios."""

    log_ratio_T: np.ndarray


@pytest.mark.parametrize(
    ("value", "units", "least", "is_so"),
    [
        # Two-sided at one in a hundred: 2.58 standard errors of many prompts, 3.25 of ten.
        (2.5, 10**6, 0.0, False), (2.6, 10**6, 0.0, True), (-2.6, 10**6, 0.0, True),
        (3.2, 10, 0.0, False), (3.3, 10, 0.0, True),
        # And more than half of what would be named.
        (3.9, 10**6, 8.0, False), (4.1, 10**6, 8.0, True),
    ],
)  # fmt: skip
def test_a_figure_is_suspicious_beyond_its_error_and_half_of_what_is_named(
    value: float, units: int, least: float, is_so: bool
) -> None:
    assert suspicious(value, 1.0, units, least) is is_so


@pytest.mark.parametrize(
    ("log_ratios", "is_so"),
    [
        ([-0.9] * 20, True),
        ([0.9] * 20, True),
        ([-1.1] * 20, False),
        # Two sides, and more than half of the squares far away.
        ([-0.9] * 10 + [0.9] * 10, False),
        ([-0.5] * 20 + [-2.0], True),
        ([-0.5] * 20 + [-2.0] * 2, False),
    ],
)
def test_a_mask_moves_tokens_one_way_and_less_than_a_nat(log_ratios: list[float], is_so: bool) -> None:
    evidence: Any = Seen(np.array(log_ratios))
    assert follows_mask(evidence) is is_so


def test_others_are_weighted_to_be_as_likely_as_ours() -> None:
    # Ours are nearly all of sure tokens, others nearly all of unsure ones; of a third kind there are too few others.
    logprobs_T = np.repeat([-0.1, -2.0, -5.0], [500, 500, 100])
    ours_T = np.zeros(1100, dtype=bool)
    ours_T[:400] = ours_T[500:540] = ours_T[1000:1080] = True
    kept_T, weight_T = equally_likely(logprobs_T, ours_T, ~ours_T)
    assert [int(kept_T[part].sum()) for part in (slice(0, 500), slice(500, 1000), slice(1000, 1100))] == [400, 40, 0]
    assert weight_T[:500].sum() == pytest.approx(400)
    assert weight_T[500:1000].sum() == pytest.approx(40)
    assert weight_T[ours_T].sum() == 0.0
