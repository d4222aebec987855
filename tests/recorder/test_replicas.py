"""Engines that were built alike in several processes: what is said of them is said of all, and updates are counted."""

from pathlib import Path

import numpy as np
import pytest
from recorded_worlds import RESET, effective, engine, process_of
from written_recording import WrittenProcess, coded

from rlaudit.configs.engine_arguments.recorded_facts import recorded_facts, recorded_sentences
from rlaudit.recording.recorded_engine import RecordedEngine
from rlaudit.recording.recording import open_recording
from rlaudit.recording.shipped.rlaudit_recorder import ELEMENTS
from rlaudit.tokens.open_table import open_tables


def replica(folder: Path, pid: int, updates: int, resets: int, host: str = "node") -> None:
    """Write an engine and its worker: two tokens before each update, and 5 at the end."""
    front, worker = process_of(folder), WrittenProcess(folder, pid=pid + 1, parent=pid)
    front.pid = front.lines[0]["pid"] = pid
    front.lines[0]["host"] = worker.lines[0]["host"] = host
    front.lines[0]["boot"] = worker.lines[0]["boot"] = f"boot of {host}"
    engine(front, effective())
    for number in range(updates):
        front.step(2)
        worker.now = front.now
        worker.load()
        if number < resets:
            worker.call(RESET, result=True)
        front.now = worker.now
    front.step(5)
    front.write()
    worker.write()


def the_engine(folder: Path) -> tuple[RecordedEngine, str, dict[str, object]]:
    recording = open_recording(folder)
    (one,) = recording.engines
    facts = {name: value for some, _ in recorded_facts(one, recording) for name, value in some.given().items()}
    return one, "\n".join(recorded_sentences(one, recording)), facts


def test_an_update_that_one_engine_did_not_get_is_visible(tmp_path: Path) -> None:
    replica(tmp_path, 100, updates=2, resets=2)
    replica(tmp_path, 200, updates=3, resets=3)
    one, said, facts = the_engine(tmp_path)
    assert [len(each.updates) for each in one.everywhere] == [2, 3]
    assert facts["replicas"] == one.replicas == 2
    assert "5 weight updates" in said
    assert "numbers of weight updates: 3 in process 200 (5 tokens since); 2 in process 100 (5 tokens since)" in said


@pytest.mark.parametrize(("resets", "expected"), [(3, True), (0, False)])
def test_what_is_done_at_an_update_is_asked_of_every_engine(resets: int, expected: bool, tmp_path: Path) -> None:
    replica(tmp_path, 100, updates=3, resets=resets)
    replica(tmp_path, 200, updates=3, resets=resets)
    _, said, facts = the_engine(tmp_path)
    assert facts["resets_prefix_cache"] is expected
    assert "each of these 2 engines had 3 weight updates" in said


def test_an_engine_that_keeps_its_blocks_is_not_hidden_by_another_that_does_not(tmp_path: Path) -> None:
    replica(tmp_path, 100, updates=3, resets=3)
    replica(tmp_path, 200, updates=3, resets=0)
    _, _, facts = the_engine(tmp_path)
    assert facts["resets_prefix_cache"] not in (True, False)


def test_replicas_of_two_hosts_are_told_apart_by_both(tmp_path: Path) -> None:
    replica(tmp_path, 100, updates=1, resets=0, host="one")
    replica(tmp_path, 200, updates=2, resets=0, host="two")
    assert "2 in process 200 of two (5 tokens since); 1 in process 100 of one" in the_engine(tmp_path)[1]


@pytest.mark.parametrize(("updates", "named"), [((2, 3), 1), ((3, 3), 0)])
def test_compare_says_that_versions_of_two_engines_are_not_the_same(
    updates: tuple[int, int], named: int, tmp_path: Path
) -> None:
    for pid, number in zip((100, 200), updates, strict=True):
        replica(tmp_path, pid, updates=number, resets=0)
    (table,) = open_tables(tmp_path)
    assert sum(one.startswith("2 engines had 2 to 3 updates") for one in table.part.not_seen) == named


@pytest.mark.parametrize(("named", "expected"), [(True, [1, 3]), (False, [3, 3])])
def test_workers_that_a_raylet_started_are_of_the_front_end_that_resolved_their_configuration(
    named: bool, expected: list[int], tmp_path: Path
) -> None:
    workers = [WrittenProcess(tmp_path, pid=pid, parent=50) for pid in (101, 201)]
    for pid, worker, updates in zip((100, 200), workers, (1, 3), strict=True):
        front = process_of(tmp_path)
        front.pid = front.lines[0]["pid"] = pid
        engine(front, {**effective(), "instance_id": f"instance-{pid}"})
        front.step(4)
        worker.worker(f"instance-{pid}" if named else None)
        for _ in range(updates):
            worker.load()
        front.step(4)
        front.write()
        worker.write()
    found = {one.fronts[0].pid: len(one.updates) for one in open_recording(tmp_path).served}
    assert list(found.values()) == expected


def sent_to(
    folder: Path, pid: int, values: list[tuple[float, float]], is_read: bool = True, begins: float = 0.0
) -> None:
    """Write an engine that is sent these values of its two tensors. is_read: also after the last time."""
    front, worker = process_of(folder), WrittenProcess(folder, pid=pid + 1, parent=pid)
    front.pid = front.lines[0]["pid"] = pid
    engine(front, effective())
    front.now += begins
    front.step(2)
    for number, pair in enumerate(values):
        worker.now = front.now
        worker.load()
        elements = coded(np.repeat(pair, ELEMENTS), "<f4")
        if is_read or number + 1 < len(values):
            each = dict.fromkeys(("values", "values_sent", "values_rounded", "values_held"), elements)
            worker.put("weights", load=worker.loads, tensors=0, sent=0, **each)
        front.now = worker.now
        front.step(2)
    front.write()
    worker.write()


NAN = float("nan")


@pytest.mark.parametrize(
    ("first", "second", "is_read", "missed"),
    [
        ([(1, 1), (2, 2)], [(1, 1), (1, 1)], True, "2 of the 2"),
        ([(1, 1), (2, 2)], [(1, 1), (2, 1)], True, "1 of the 2"),
        ([(1, 1), (2, NAN)], [(1, 1), (2, NAN)], True, None),
        ([(1, 1), (2, 2)], [(1, 1), (2, 2)], True, None),
        # Then it is not known what came last.
        ([(1, 1), (2, 2)], [(1, 1), (1, 1)], False, None),
    ],
)
def test_an_engine_that_was_never_sent_what_another_has_is_named_also_with_as_many_updates(
    first: list[tuple[float, float]],
    second: list[tuple[float, float]],
    is_read: bool,
    missed: str | None,
    tmp_path: Path,
) -> None:
    sent_to(tmp_path, 200, second, is_read)
    sent_to(tmp_path, 100, first, begins=1.0)
    said = the_engine(tmp_path)[1]
    assert "each of these 2 engines had 2 weight updates" in said
    assert (f"process 200 was never sent {missed} tensors that process 100 was sent last" in said) == bool(missed)
    assert ("was never sent" in said) == bool(missed)
