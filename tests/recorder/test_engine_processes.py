"""Which processes are of which engine, and that nothing of one engine is counted for another."""

from pathlib import Path

from recorder_folder import tokens_by_version
from written_recording import WrittenProcess

from rlaudit.recording.closing import closing
from rlaudit.tokens.recorded.recorded_log import recorded_log
from rlaudit.tokens.recorded.recording_notes import not_seen

PROMPT = [1, 2, 3]
Server = tuple[WrittenProcess, list[WrittenProcess], WrittenProcess]


def server(first: WrittenProcess, instance: str) -> Server:
    """A server: its parent, its API servers and its engine core."""
    first.engine(instance_id=instance)
    fronts = [first.beside(first.pid + 1 + place, parent=first.pid) for place in range(2)]
    for place, front in enumerate(fronts):
        front.engine(instance_id=f"{instance} of {place}")
        front.sampling()
    core = first.beside(first.pid + 9, parent=first.pid)
    core.worker(instance)
    return first, fronts, core


def one_token(front: WrittenProcess, engine: int | None = None) -> None:
    front.sampled(PROMPT, [7], engine=engine)


def engines_in(front: WrittenProcess, with_workers: bool) -> None:
    """Two engines in one process, each with a token."""
    front.sampling()
    for number in (1, 2):
        front.engine(number, instance_id=str(number))
        if with_workers:
            front.worker(str(number))
        one_token(front, number)


def test_api_servers_are_front_ends_of_the_engine_that_their_parent_built(tmp_path: Path) -> None:
    parent, fronts, core = server(WrittenProcess(tmp_path, 100), "a")
    for number in range(2):
        for front in fronts:
            one_token(front)
        if not number:
            core.load()
    recording = parent.opened()
    (served,) = recording.served
    assert [front.pid for front in served.fronts] == [101, 102]
    assert tokens_by_version(served) == [2, 2]
    (engine,) = recording.engines
    assert (engine.process.pid, engine.replicas, len(engine.updates)) == (100, 1, 1)
    assert [kind.requests for kind in engine.sampled] == [4]
    assert any("4 processes, 1 engine, 4 requests" in sentence for sentence in closing(tmp_path, recording, [], []))


def test_a_reset_after_a_token_of_another_front_end_of_the_engine_came_too_late(tmp_path: Path) -> None:
    _, (first, second), core = server(WrittenProcess(tmp_path, 100), "a")
    one_token(first)
    core.load()
    one_token(second)
    core.reset()
    one_token(first)
    assert [update.reset for update in first.served().updates] == [False]


def test_two_servers_of_one_recording_have_their_own_updates(tmp_path: Path) -> None:
    one = server(WrittenProcess(tmp_path, 100), "a")
    other = server(one[0].beside(200), "b")
    for front in (*one[1], *other[1]):
        one_token(front)
    other[2].load()
    updates = {front.pid: len(each.updates) for each in one[0].opened().served for front in each.fronts}
    assert updates == {101: 0, 102: 0, 201: 1, 202: 1}


def test_two_engines_of_one_process_are_told_apart(tmp_path: Path) -> None:
    front = WrittenProcess(tmp_path, 100)
    front.sampling()
    cores = [front.beside(101 + place, parent=100) for place in range(2)]
    for number, core in enumerate(cores, 1):
        front.engine(number, instance_id=str(number))
        core.worker(str(number))
    # Each numbers its own requests; the last of the second engine has the number of the one before.
    for number, requests in ((1, 0), (2, 0), (None, 0), (1, 1), (2, 2), (2, 2)):
        front.requests = requests
        if number is None:
            cores[1].load()
        else:
            one_token(front, number)
    recording = front.opened()
    assert [tokens_by_version(one) for one in recording.served] == [[2], [1, 2]]
    sequences = list(recorded_log(tmp_path).logged())
    assert sorted(one.token_columns["rollout_version"][0] for one in sequences) == [0, 0, 0, 1, 1]
    assert len({one.sample for one in sequences}) == 4
    (engine,) = recording.engines
    assert engine.replicas == 2


def test_calls_of_engines_in_one_process_are_of_the_engine_that_they_name(tmp_path: Path) -> None:
    front = WrittenProcess(tmp_path)
    engines_in(front, with_workers=True)
    with front.rpc("reload_weights", engine=2):
        front.load()
    served = front.opened().served
    assert [len(one.updates) for one in served] == [0, 1]
    assert not any(one.missing for one in served)


def test_loads_that_no_call_names_are_counted_for_each_engine_of_the_process_and_named(tmp_path: Path) -> None:
    front = WrittenProcess(tmp_path)
    engines_in(front, with_workers=False)
    front.load()
    served = front.opened().served
    assert [len(one.updates) for one in served] == [1, 1]
    assert all("without a call that names the engine" in one.missing[0] for one in served)


def test_a_process_that_nothing_places_is_of_each_engine_and_named(tmp_path: Path) -> None:
    front = WrittenProcess(tmp_path)
    for one in (front, front.beside(200)):
        one.sampling()
        one_token(one)
    front.beside(300, parent=7).load()
    served = front.opened().served
    assert [len(one.updates) for one in served] == [1, 1]
    assert all("may serve each of 2 engines" in one.missing[0] for one in served)


def test_what_a_judge_sampled_is_apart_from_what_the_policy_did(tmp_path: Path) -> None:
    front = WrittenProcess(tmp_path)
    front.sampling()
    for number, model in enumerate(("policy", "judge"), 1):
        front.engine(number, model=model, instance_id=model)
        for _ in range(number):
            front.sampled(PROMPT, [7 + number, 3], engine=number)
    log = recorded_log(front.write())
    assert log.group.model == "judge" and len(log.judged) == 2
    front.trainer([[8, 3]], [[-1.0, -1.0]])
    log = recorded_log(front.write())
    assert log.group.model == "policy" and len(log.judged) == 1
    assert any("2 sequences (4 tokens) were sampled with" in one and "judge" in one for one in not_seen(log))
