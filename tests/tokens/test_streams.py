"""The parts that keep memory fixed: prompt numbers, samples of a stream, reading ahead, joining two streams."""

import threading
from pathlib import Path

import numpy as np
import pytest
from table_files import as_sequences, rows, whole, write_lines

from rlaudit.tokens import prompt_numbers
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.join_trainer import joined
from rlaudit.tokens.prefetch import prefetched
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.prompt_tokens import with_prompt_tokens
from rlaudit.tokens.sequence_sample import SequenceSample


def test_a_prompt_has_the_same_number_wherever_it_comes():
    numbers = PromptNumbers()
    assert numbers.of(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert numbers.of(["a", "c"]).tolist() == [1, 2]
    assert (numbers.used, numbers.note()) == (3, "")


def test_more_prompts_than_numbers_share_groups_and_it_is_said(monkeypatch):
    monkeypatch.setattr(prompt_numbers, "PROMPTS", 8)
    numbers = PromptNumbers()
    first = numbers.of(range(100))
    assert first[:8].tolist() == list(range(8))
    assert first.max() < 8
    assert len(set(first[8:].tolist())) > 4
    np.testing.assert_array_equal(numbers.of(range(100)), first)
    assert numbers.used == 8
    assert "more than 8 prompts" in numbers.note()


def test_a_sample_of_a_stream_is_spread_over_it_and_bounded(tmp_path):
    batch = whole(write_lines(tmp_path / "s.jsonl", as_sequences(rows(prompts=200))))
    sampled = SequenceSample(100)
    for first in range(0, 400, 10):
        sampled.add(batch.take(np.arange(first, first + 10)))
        assert sampled.tokens <= 200
    kept = sampled.batch()
    assert kept.tokens >= 100
    names = kept.prompt_names_S
    assert names.min() < 20
    assert names.max() > 180
    assert (np.diff(kept.sequence_T) <= 1).all()


def test_a_stream_that_fits_is_sampled_whole(tmp_path):
    batch = whole(write_lines(tmp_path / "s.jsonl", as_sequences(rows())))
    sampled = SequenceSample(1000)
    sampled.add(batch)
    np.testing.assert_array_equal(sampled.batch().rollout_logprobs_T, batch.rollout_logprobs_T)
    assert SequenceSample(10).batch() is None


def test_reading_ahead_changes_neither_items_nor_errors():
    assert list(prefetched(iter(range(20)))) == list(range(20))

    def broken():
        yield 1
        raise ValueError("broken file")

    ahead = prefetched(broken())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="broken file"):
        next(ahead)


def test_reading_ahead_stops_when_nobody_reads_on():
    before = threading.active_count()
    ahead = prefetched(iter(range(10**9)))
    next(ahead)
    ahead.close()
    assert threading.active_count() == before


PATHS = (Path("rollouts.jsonl"), Path("trainer.jsonl"))


def sequences(parts):
    return sum(part.sequences for part in parts)


def tables(tmp_path):
    frame = rows()
    rollouts = whole(write_lines(tmp_path / "r.jsonl", as_sequences(frame.drop(columns="trainer_logprob"))))
    trainer = whole(write_lines(tmp_path / "t.jsonl", as_sequences(frame.assign(advantage=1.0))))
    return frame, rollouts, trainer


def test_trainer_logprobs_are_joined_by_prompt_and_sample_in_any_order(tmp_path):
    frame, rollouts, trainer = tables(tmp_path)
    faults = Faults()
    backwards = trainer.take(np.arange(trainer.sequences)[::-1])
    parts = list(joined(iter([rollouts]), iter([backwards]), PATHS, faults))
    assert not faults.count
    for part in parts:
        assert part.token_columns["advantage"].tolist() == [1.0] * part.tokens
        for sequence in range(part.sequences):
            one = part.take([sequence])
            own = frame[(frame.prompt_id == one.prompt_names_S[0]) & (frame.sample_id == one.sample_names_S[0])]
            np.testing.assert_allclose(one.trainer_logprobs_T, own.trainer_logprob)


def test_a_trainer_that_scored_other_tokens_is_named(tmp_path):
    _, rollouts, trainer = tables(tmp_path)
    trainer.token_id_T[1] += 1
    faults = Faults()
    assert sequences(joined(iter([rollouts]), iter([trainer]), PATHS, faults)) == 5
    assert "prompt 0, sample 0: token 1 is" in faults.lines()[0]
    assert "re-tokenised" in faults.lines()[0]


def test_sequences_without_a_counterpart_are_named(tmp_path):
    _, rollouts, trainer = tables(tmp_path)
    faults = Faults()
    first, last = trainer.take(np.arange(5)), rollouts.take(np.arange(1, 6))
    assert sequences(joined(iter([last]), iter([first]), PATHS, faults)) == 4
    said = faults.lines()
    assert said == [
        "rollouts.jsonl:6: prompt 2, sample 1: trainer.jsonl does not have this sequence; the sequence is left out",
        "trainer.jsonl:1: prompt 0, sample 0: rollouts.jsonl does not have this sequence; the sequence is left out",
    ]
    assert (faults.sequences_left_out, faults.tokens_left_out) == (2, 8)


def test_a_trainer_of_another_length_is_named(tmp_path):
    frame, rollouts, _ = tables(tmp_path)
    shorter = whole(write_lines(tmp_path / "t2.jsonl", as_sequences(frame.drop(index=2))))
    faults = Faults()
    assert sequences(joined(iter([rollouts]), iter([shorter]), PATHS, faults)) == 5
    assert "prompt 0, sample 0: 3 tokens here, 2 in trainer.jsonl" in faults.lines()[0]


def test_token_ids_of_prompts_may_stand_beside_the_table(tmp_path):
    frame = rows()
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    batch = whole(tmp_path / "t.parquet")
    assert with_prompt_tokens(batch, tmp_path / "t.parquet", Faults()).prompt_token_ids_S is None
    write_lines(tmp_path / "prompts.jsonl", [{"prompt_id": n, "prompt_token_ids": [n, n + 1]} for n in range(3)])
    ids = with_prompt_tokens(batch, tmp_path / "t.parquet", Faults()).prompt_token_ids_S
    assert [own.tolist() for own in ids] == [[0, 1], [0, 1], [1, 2], [1, 2], [2, 3], [2, 3]]
