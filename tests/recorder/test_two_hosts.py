"""Recordings of two hosts: clocks are comparable within a boot alone, and what is in no order is not claimed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorder_folder import tokens_by_version
from written_recording import Clock, WrittenProcess

from rlaudit.recording.recording import open_recording
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.open_table import open_tables
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.token_batch import concatenate

PROMPT = [5, 6, 7]
# The second host was started an hour before the first, whose monotonic clock it is ahead of, or a quarter of it after.
OFFSETS = (3600.0, -900.0)
FIRST, SECOND = ({"host": name, "boot": f"boot of {name}"} for name in ("first", "second"))


def sampled(folder: Path) -> WrittenProcess:
    """An engine with three sequences, and an update before the third."""
    return three(WrittenProcess(folder, first=FIRST))


def three(process: WrittenProcess, base: int = 0) -> WrittenProcess:
    """base: of the ids of the sequences."""
    process.sampling(0, temperature=0.7)
    for number in range(3):
        if number == 2:
            process.load()
        process.sampled(PROMPT, [base + 10 * number + place for place in range(4)])
    return process


def scored(engine: WrittenProcess, numbers: tuple[int, ...], offset: float | None) -> tuple[Any, str]:
    """The tokens, and what is not seen, with a trainer of some sequences. offset: of its host's clock, None if here."""
    elsewhere = {} if offset is None else {"clock": Clock(1000.0 + offset), **SECOND}
    trainer = engine.beside(200, **elsewhere) if elsewhere else engine.beside(200, **FIRST)
    for number in numbers:
        trainer.trainer([[10 * number + place for place in range(4)]], [[-2.0] * 4])
    engine.opened()
    (table,) = open_tables(engine.folder)
    return concatenate(table.batches(Faults(), PromptNumbers())), "\n".join(table.part.not_seen)


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_trainer_on_another_host_is_joined_whatever_its_clock_says(offset: float, tmp_path: Path) -> None:
    batch, not_seen = scored(sampled(tmp_path), (0, 1), offset)
    assert batch.sequences == 2 and np.all(batch.trainer_logprobs_T == -2.0)
    assert list(batch.token_columns["rollout_version"]) == [0] * 8
    # The third may have come too late for the trainer: it finished after all that were scored.
    assert "1 sequences finished after the trainer's last" in not_seen


@pytest.mark.parametrize(("offset", "lag"), [(OFFSETS[0], np.nan), (None, 1)])
def test_the_lag_of_a_trainer_is_known_on_the_same_host_alone(offset: float | None, lag: float, tmp_path: Path) -> None:
    batch, not_seen = scored(sampled(tmp_path), (0, 1, 2), offset)
    found = batch.token_columns.get("trainer_version", np.full(12, np.nan))
    assert np.array_equal(found, [lag] * 12, equal_nan=True)
    said = ("the clocks of 2 hosts cannot be compared", "3 sequences were scored on another host")
    assert [part in not_seen for part in said] == [offset is not None] * 2


def test_a_sequence_that_a_trainer_elsewhere_passed_over_is_not_late(tmp_path: Path) -> None:
    _, not_seen = scored(sampled(tmp_path), (0, 2), OFFSETS[1])
    assert "finished after the trainer's last" not in not_seen


def test_an_engine_whose_sequences_no_trainer_elsewhere_scored_has_none_that_are_late(tmp_path: Path) -> None:
    engine = sampled(tmp_path)
    three(engine.beside(150, clock=Clock(), **FIRST), base=1000)
    _, not_seen = scored(engine, (0, 1, 2), OFFSETS[0])
    assert "finished after the trainer's last" not in not_seen


def test_loads_on_another_host_are_in_no_order_with_tokens_here_and_are_named(tmp_path: Path) -> None:
    front = sampled(tmp_path)
    front.beside(101, parent=100, clock=Clock(front.now - 1.0), **SECOND).load()
    served = front.served()
    assert len(served.updates) == 1 and tokens_by_version(served) == [8, 4]
    assert any("other hosts loaded weights" in one for one in served.missing)


@pytest.mark.parametrize("offset", OFFSETS)
def test_stamps_of_an_engine_core_on_another_host_are_known_as_such(offset: float, tmp_path: Path) -> None:
    process = WrittenProcess(tmp_path)
    process.load()
    at = process.now
    process.now += offset
    process.step(7)
    process.lines[-1]["at"] = process.now = at + 1.0
    process.step(5)
    served = process.served()
    assert np.isnan(served.steps.stamps[0]) and tokens_by_version(served) == [0, 5]
    assert any("engine core on another host" in one for one in served.missing)


def test_containers_of_one_host_have_one_clock_and_each_its_own_process_ids(tmp_path: Path) -> None:
    for host, updates in (("one", 1), ("two", 2)):
        front = WrittenProcess(tmp_path, pid=7, first={"host": host})  # and the same boot
        front.step(3)
        front.beside(8, parent=7, host=host).play(["load"] * updates)
        for process in front.everyone:
            process.write()
    found = {one.fronts[0].host: len(one.updates) for one in open_recording(tmp_path).served}
    assert found == {"one": 1, "two": 2}
