"""Engines that were built alike in several processes: what is said of them is said of all, and updates are counted."""

from pathlib import Path

import pytest
from recorded_worlds import effective, engine, process_of
from written_recording import WrittenProcess

from rlaudit.configs.engine_arguments.recorded_facts import recorded_facts, recorded_sentences
from rlaudit.recording.recorded_engine import RecordedEngine
from rlaudit.recording.recording import open_recording
from rlaudit.tokens.open_table import open_tables


def pair(folder: Path, pid: int, **first: str) -> tuple[WrittenProcess, WrittenProcess]:
    """The front end of an engine, and its worker."""
    front = process_of(folder)
    front.pid = front.lines[0]["pid"] = pid
    front.lines[0].update(first)
    engine(front, effective())
    return front, front.beside(pid + 1, parent=pid, **first)


def replica(folder: Path, pid: int, updates: int, resets: int, host: str = "node") -> None:
    """Write an engine and its worker: two tokens before each update, and 5 at the end."""
    front, worker = pair(folder, pid, host=host, boot=f"boot of {host}")
    for number in range(updates):
        front.step(2)
        worker.load()
        if number < resets:
            worker.reset()
    front.step(5)
    for process in (front, worker):
        process.write()


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


@pytest.mark.parametrize(("one", "other", "expected"), [(3, 3, True), (0, 0, False), (3, 0, None)])
def test_what_is_done_at_an_update_is_asked_of_every_engine(
    one: int, other: int, expected: bool | None, tmp_path: Path
) -> None:
    replica(tmp_path, 100, updates=3, resets=one)
    replica(tmp_path, 200, updates=3, resets=other)
    _, said, facts = the_engine(tmp_path)
    found = facts["resets_prefix_cache"]
    assert found is expected or (expected is None and found not in (True, False))
    assert "each of these 2 engines had 3 weight updates" in said


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
        worker.play(["load"] * updates)
        front.step(4)
        for process in (front, worker):
            process.write()
    assert [len(one.updates) for one in open_recording(tmp_path).served] == expected


NAN = float("nan")
ONES, TWOS = (1, 1), (2, 2)


@pytest.mark.parametrize(
    ("first", "second", "is_read", "missed"),
    [
        (TWOS, ONES, True, "2 of the 2"),
        (TWOS, (2, 1), True, "1 of the 2"),
        ((2, NAN), (2, NAN), True, None),
        (TWOS, TWOS, True, None),
        # Then it is not known what came last.
        (TWOS, ONES, False, None),
    ],
)
def test_an_engine_that_was_never_sent_what_another_has_is_named_also_with_as_many_updates(
    first: tuple[float, float], second: tuple[float, float], is_read: bool, missed: str | None, tmp_path: Path
) -> None:
    for pid, last, begins in ((200, second, 0.0), (100, first, 1.0)):
        front, worker = pair(tmp_path, pid)
        front.now += begins
        front.step(2)
        for is_last, values in enumerate((ONES, last)):
            worker.load()
            if is_read or pid == 100 or not is_last:
                worker.weights(values, sent=values, rounded=values, held=values)
            front.step(2)
        for process in (front, worker):
            process.write()
    said = the_engine(tmp_path)[1]
    assert "each of these 2 engines had 2 weight updates" in said
    assert (f"process 200 was never sent {missed} tensors that process 100 was sent last" in said) == bool(missed)
    assert ("was never sent" in said) == bool(missed)
