import numpy as np
import pytest
from simulated_pairs import five_tokens

from rlaudit.tokens.integrity import integrity_fault
from rlaudit.tokens.pairs import LogprobPairs


def pairs_of(rollout_T: list[float], trainer_T: list[float], **more: object) -> LogprobPairs:
    sequence_T = [0] * (len(rollout_T) - 1) + [1] * (len(rollout_T) > 0)
    return LogprobPairs(
        np.array(rollout_T),
        np.array(trainer_T),
        np.array(sequence_T, dtype=int),
        np.array([0, 1]),
        **more,  # type: ignore[arg-type]
    )


def test_sound_pairs_have_no_fault() -> None:
    assert integrity_fault(five_tokens()) is None
    assert integrity_fault(pairs_of([5e-7, -1.0], [0.0, -1.0])) is None  # rounding


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "negative infinity"),
        (0.03, "positive logprob"),
        (float("inf"), "positive logprob"),
    ],
)
@pytest.mark.parametrize("side", ["rollout", "trainer"])
def test_a_value_no_logprob_can_have_is_a_fault_with_its_side_and_place(bad: float, kind: str, side: str) -> None:
    good, broken = [-1.0, -1.0, -1.0], [-1.0, -1.0, bad]
    fault = integrity_fault(pairs_of(broken, good) if side == "rollout" else pairs_of(good, broken))
    assert fault is not None and f"the {side} logprobs: {kind} at 1 of 3 tokens" in fault
    assert "first in sequence 1 at position 0" in fault


def test_no_token_at_all_is_a_fault() -> None:
    assert integrity_fault(LogprobPairs(np.zeros(0), np.zeros(0), np.zeros(0, int), np.zeros(0, int)))


def test_a_sequence_without_tokens_is_a_fault() -> None:
    pairs = LogprobPairs(np.array([-1.0]), np.array([-1.0]), np.array([1]), np.array([0, 0, 0]))
    assert integrity_fault(pairs) == "2 of 3 sequences have no token, first sequence 0"


def test_a_missing_entropy_value_is_a_fault() -> None:
    assert "entropy" in (integrity_fault(pairs_of([-1.0, -1.0], [-1.0, -1.0], entropy_T=np.array([1.0, np.nan]))) or "")
