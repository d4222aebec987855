"""The parts that keep memory fixed: prompt numbers, samples of a stream, reading ahead, joining two streams."""

import threading

import numpy as np
import pytest
from table_files import as_sequences, rows, whole, write_lines

from rlaudit.tokens import prompt_numbers
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.parallel_map import prefetched
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.prompt_tokens import with_prompt_tokens
from rlaudit.tokens.sequence_sample import SequenceSample


def test_a_prompt_has_the_same_number_wherever_it_comes():
    numbers = PromptNumbers()
    assert numbers.of(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert numbers.of(["a", "c"]).tolist() == [1, 2]
    assert (numbers.names, numbers.note()) == (("b", "a", "c"), "")


def test_more_prompts_than_numbers_share_groups_and_it_is_said(monkeypatch):
    monkeypatch.setattr(prompt_numbers, "PROMPTS", 8)
    numbers = PromptNumbers()
    first = numbers.of(range(100))
    assert first[:8].tolist() == list(range(8))
    assert first.max() < 8
    assert len(set(first[8:].tolist())) > 4
    np.testing.assert_array_equal(numbers.of(range(100)), first)
    assert numbers.names == tuple(range(8))
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


def test_token_ids_of_prompts_may_stand_beside_the_table(tmp_path):
    frame = rows()
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    batch = whole(tmp_path / "t.parquet")
    assert with_prompt_tokens(batch, tmp_path / "t.parquet", Faults()).prompt_token_ids_S is None
    write_lines(tmp_path / "prompts.jsonl", [{"prompt_id": n, "prompt_token_ids": [n, n + 1]} for n in range(3)])
    ids = with_prompt_tokens(batch, tmp_path / "t.parquet", Faults()).prompt_token_ids_S
    assert [own.tolist() for own in ids] == [[0, 1], [0, 1], [1, 2], [1, 2], [2, 3], [2, 3]]
