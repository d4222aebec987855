"""Recordings of two hosts: clocks are comparable within a boot alone, and what is in no order is not claimed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorder_folder import tokens_by_version
from written_recording import WrittenProcess

from rlaudit.recording.recording import open_recording
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import concatenate

PROMPT = [5, 6, 7]
# The second host was started an hour before the first: its monotonic clock is ahead.
AHEAD = 3600.0


def on(host: str, folder: Path, pid: int, now: float = 1000.0, **more: Any) -> WrittenProcess:
    process = WrittenProcess(folder, pid=pid, now=now, **more)
    process.lines[0].update(host=host, boot=f"boot of {host}")
    return process


def sampled(folder: Path, pid: int = 100, base: int = 0) -> WrittenProcess:
    """Return an engine with three sequences, and an update before the third. base: of their ids."""
    process = on("first", folder, pid)
    process.sampling(0, temperature=0.7)
    for number in range(3):
        request = process.request(PROMPT)
        if number == 2:
            process.load()
        ids = [base + 10 * number + place for place in range(4)]
        process.sequence(request, PROMPT, ids, [-1.0] * 4, [[process.step(4), 1, 4]])
    return process


def scores(folder: Path, host: str, numbers: tuple[int, ...], now: float) -> None:
    """Write a trainer that makes its logprobs of some of the sequences."""
    trainer = on(host, folder, 200, now)
    for number in numbers:
        trainer.trainer([[10 * number + place for place in range(4)]], [[-2.0] * 4], gradients=True)
    trainer.write()


def batch_of(folder: Path) -> Any:
    (table,) = open_tables(folder)
    return concatenate(table.batches(Faults(), PromptNumbers())), table.part.not_seen


@pytest.mark.parametrize("offset", [AHEAD, -900.0])
def test_a_trainer_on_another_host_is_joined_whatever_its_clock_says(offset: float, tmp_path: Path) -> None:
    folder = sampled(tmp_path).write()
    scores(folder, "second", (0, 1), 1000.0 + offset)
    batch, not_seen = batch_of(folder)
    assert batch.sequences == 2 and np.all(batch.trainer_logprobs_T == -2.0)
    assert list(batch.token_columns["rollout_version"]) == [0] * 8
    # The third may have come too late for the trainer: it finished after all that were scored.
    assert any(one.startswith("1 sequences finished after the trainer's last") for one in not_seen)


def test_the_lag_of_a_trainer_on_another_host_is_not_claimed(tmp_path: Path) -> None:
    process = sampled(tmp_path)
    folder = process.write()
    scores(folder, "second", (0, 1, 2), 1000.0 + AHEAD)
    batch, not_seen = batch_of(folder)
    assert any(one.startswith("the clocks of 2 hosts are in no order") for one in not_seen)
    assert np.isnan(batch.token_columns.get("trainer_version", np.nan)).all()
    assert any("3 sequences were scored on another host" in one for one in not_seen)


def test_on_the_same_host_the_lag_is_known(tmp_path: Path) -> None:
    process = sampled(tmp_path)
    folder = process.write()
    scores(folder, "first", (0, 1, 2), process.now)
    batch, not_seen = batch_of(folder)
    assert list(batch.token_columns["trainer_version"]) == [1] * 12
    assert not any("another host" in one for one in not_seen)


def test_a_sequence_that_a_trainer_elsewhere_passed_over_is_not_late(tmp_path: Path) -> None:
    folder = sampled(tmp_path).write()
    scores(folder, "second", (0, 2), 1000.0 - 900.0)
    _, not_seen = batch_of(folder)
    assert not any("finished after the trainer's last" in one for one in not_seen)


def test_an_engine_whose_sequences_no_trainer_elsewhere_scored_has_none_that_are_late(tmp_path: Path) -> None:
    sampled(tmp_path, pid=150, base=1000).write()
    scores(sampled(tmp_path).write(), "second", (0, 1, 2), 1000.0 + AHEAD)
    _, not_seen = batch_of(tmp_path)
    assert not any("finished after the trainer's last" in one for one in not_seen)


def test_loads_on_another_host_are_in_no_order_with_tokens_here_and_are_named(tmp_path: Path) -> None:
    front = sampled(tmp_path)
    front.write()
    worker = on("second", tmp_path, 101, front.now - 1.0, parent=100)
    worker.load()
    worker.write()
    (served,) = open_recording(tmp_path).served
    assert len(served.updates) == 1 and tokens_by_version(served) == [8, 4]
    assert any("other hosts loaded weights" in one for one in served.missing)


@pytest.mark.parametrize("offset", [AHEAD, -900.0])
def test_stamps_of_an_engine_core_on_another_host_are_known_as_such(offset: float, tmp_path: Path) -> None:
    process = on("first", tmp_path, 100)
    process.load()
    at = process.now
    process.now += offset
    process.step(7)
    process.lines[-1]["at"] = process.now = at + 1.0
    process.step(5)
    (served,) = open_recording(process.write()).served
    assert np.isnan(served.steps.stamps[0]) and tokens_by_version(served) == [0, 5]
    assert any("engine core on another host" in one for one in served.missing)


def test_containers_of_one_host_have_one_clock_and_each_its_own_process_ids(tmp_path: Path) -> None:
    for host, updates in (("one", 1), ("two", 2)):
        front, worker = WrittenProcess(tmp_path / host, pid=7), WrittenProcess(tmp_path / host, pid=8, parent=7)
        for process in (front, worker):
            process.lines[0]["host"] = host  # and the same boot
        front.step(3)
        for _ in range(updates):
            worker.load()
        for process in (front, worker):
            process.write()
            process.path.rename(tmp_path / f"{host}-{process.pid}.jsonl")
    found = {one.fronts[0].host: len(one.updates) for one in open_recording(tmp_path).served}
    assert found == {"one": 1, "two": 2}
