import numpy as np
import pytest
from simulated_pairs import five_tokens

from rlaudit.tokens.integrity import FaultKind, integrity_faults
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
    assert integrity_faults(five_tokens()) == []


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (float("nan"), FaultKind.NAN),
        (float("-inf"), FaultKind.NEGATIVE_INFINITY),
        (0.03, FaultKind.POSITIVE_LOGPROB),
        (float("inf"), FaultKind.POSITIVE_LOGPROB),
    ],
)
@pytest.mark.parametrize("side", ["rollout", "trainer"])
def test_a_value_no_logprob_can_have_is_a_fault_with_its_side_and_place(bad: float, kind: FaultKind, side: str) -> None:
    good, broken = [-1.0, -1.0, -1.0], [-1.0, -1.0, bad]
    (fault,) = integrity_faults(pairs_of(broken, good) if side == "rollout" else pairs_of(good, broken))
    assert fault.kind is kind
    assert fault.sequences == (1,)
    assert f"the {side} logprobs" in fault.message
    assert "first in sequence 1 at position 0" in fault.message


def test_rounding_above_zero_is_not_a_fault() -> None:
    assert integrity_faults(pairs_of([5e-7, -1.0], [0.0, -1.0])) == []


def test_no_token_at_all_is_a_fault() -> None:
    (fault,) = integrity_faults(LogprobPairs(np.zeros(0), np.zeros(0), np.zeros(0, int), np.zeros(0, int)))
    assert fault.kind is FaultKind.NO_TOKENS


def test_a_sequence_without_tokens_is_a_fault() -> None:
    pairs = LogprobPairs(np.array([-1.0]), np.array([-1.0]), np.array([1]), np.array([0, 0, 0]))
    (fault,) = integrity_faults(pairs)
    assert fault.kind is FaultKind.EMPTY_SEQUENCE
    assert fault.sequences == (0, 2)


def test_a_missing_entropy_value_is_a_fault() -> None:
    (fault,) = integrity_faults(pairs_of([-1.0, -1.0], [-1.0, -1.0], entropy_T=np.array([1.0, np.nan])))
    assert "entropy" in fault.message
