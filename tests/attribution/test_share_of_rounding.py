from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlaudit.causes.head_precision import explained_share
from rlaudit.statistics.measurement.excess import CONSTANT


@dataclass(frozen=True)
class OneSide:
    """A side that is rounded in steps: their variance is a twelfth of their square."""

    step: float

    def explained(self, total: float) -> float:
        return min(self.step**2 / 12.0, total)


@pytest.mark.parametrize(("k2", "share"), [(0.0, 0.0), (0.001, 0.5), (0.0005, 1.0), (0.002, 0.25)])
def test_rounding_accounts_for_what_its_steps_make_of_the_variance_of_a_logit(k2: float, share: float) -> None:
    # With room of a half the variance of a logit is k2 / (0.5 * 0.25).
    step = np.sqrt(12.0 * 0.0005 / 0.125)
    excess = SimpleNamespace(parts={CONSTANT: SimpleNamespace(k2=k2)})
    evidence: Any = SimpleNamespace(excess=excess, room_T=np.full(10, 0.5), head_rounding=OneSide(step))
    assert explained_share(evidence) == pytest.approx(share)
