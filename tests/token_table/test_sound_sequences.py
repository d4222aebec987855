from pathlib import Path

import numpy as np
import pytest

from rlaudit.token_table.fault import SHOWN, Fault, Faults
from rlaudit.token_table.sound import sound
from rlaudit.token_table.token_batch import TokenBatch

HERE = Path("t.jsonl")


def batch(rollout, trainer, mask=None):
    tokens = len(rollout)
    return TokenBatch(
        rollout_logprobs_T=np.array(rollout),
        trainer_logprobs_T=np.array(trainer),
        token_id_T=np.arange(tokens),
        position_T=np.arange(tokens) % 2,
        sequence_T=np.arange(tokens) // 2,
        prompt_S=np.zeros(tokens // 2, dtype=np.int64),
        prompt_names_S=np.zeros(tokens // 2, dtype=np.int64),
        sample_names_S=np.arange(tokens // 2),
        token_columns={} if mask is None else {"loss_mask": np.array(mask)},
        sequence_columns={"line": np.arange(tokens // 2) + 11.0},
    )


FINE = [-1.0, -1.0, -2.0, -2.0]


@pytest.mark.parametrize(
    ("rollout", "trainer", "said"),
    [
        ([-1.0, np.nan, -2.0, -2.0], FINE, "the rollout logprobs: NaN or no logprob at 1 tokens, first at position 1"),
        ([-1.0, 0.5, -2.0, -2.0], FINE, "the rollout logprobs: positive at 1 tokens, first at position 1"),
        ([-np.inf, -1.0, -2.0, -2.0], FINE, "the rollout logprobs: -inf"),
        (FINE, [-1.0, 2e-6, -2.0, -2.0], "the trainer logprobs: positive"),
        (FINE, [-1.0, np.nan, -2.0, -2.0], "the trainer logprobs: NaN or no logprob"),
        (FINE, [-1.0, -np.inf, -2.0, -2.0], "the trainer logprobs: -inf"),
    ],
)
def test_a_broken_sequence_is_named_with_its_line_and_left_out(rollout, trainer, said):
    faults = Faults()
    left = sound(batch(rollout, trainer), HERE, faults)
    assert left.sample_names_S.tolist() == [1]
    assert faults.lines()[0].startswith(f"t.jsonl:11: prompt 0, sample 0: {said}")


def test_a_sound_batch_is_the_same_object():
    whole = batch(FINE, FINE)
    assert sound(whole, HERE, Faults()) is whole


def test_what_the_loss_does_not_count_may_hold_anything():
    whole = batch([np.nan, -1.0, -2.0, 3.0], [np.nan, -1.0, -2.0, np.inf], mask=[False, True, True, False])
    faults = Faults()
    assert sound(whole, HERE, faults).sequences == 2
    assert not faults.count


def test_a_sequence_without_any_trainer_logprob_is_kept_and_without_a_score():
    faults = Faults()
    assert sound(batch(FINE, [np.nan, np.nan, -2.0, -2.0]), HERE, faults).sequences == 2
    assert not faults.count


def test_a_token_outside_the_filters_that_a_trainer_replays_is_no_fault():
    faults = Faults()
    assert sound(batch(FINE, [-1.0, -np.inf, -2.0, -2.0]), HERE, faults, trainer_excludes=True).sequences == 2
    assert not faults.count


def test_faults_beyond_those_shown_are_counted_and_need_no_memory():
    faults = Faults()
    for line in range(SHOWN + 7):
        faults.add(Fault(HERE, "broken", line), sequences=1)
    assert len(faults.shown) == SHOWN
    assert faults.lines()[-1] == "and 7 more like these"
    assert faults.sequences_left_out == SHOWN + 7
