"""Which processes are of which engine, and that nothing of one engine is counted for another."""

from recorder_folder import tokens_by_version
from written_recording import WrittenProcess

from rlaudit.recording.closing import closing
from rlaudit.recording.recording import open_recording
from rlaudit.tokens.recorded.recorded_log import recorded_log
from rlaudit.tokens.recorded.recording_notes import not_seen

RPC = "vllm.v1.engine.core:EngineCore.collective_rpc"
RESET = "vllm.v1.engine.core:EngineCore.reset_prefix_cache"
PROMPT = [1, 2, 3]


def server(folder, pid, instance, servers=2):
    """A server: its parent, its API servers and its engine core, which have one clock."""
    parent = WrittenProcess(folder, pid=pid)
    parent.engine(instance_id=instance)
    fronts = [WrittenProcess(folder, pid=pid + 1 + place, parent=pid) for place in range(servers)]
    for place, front in enumerate(fronts):
        front.engine(instance_id=f"{instance} of {place}")
        front.sampling()
    core = WrittenProcess(folder, pid=pid + 9, parent=pid)
    core.worker(instance)
    return parent, fronts, core


def sampled(front, **more):
    """One request of one token, sampled now."""
    engine = more.get("engine")
    front.sequence(front.request(PROMPT, **more), PROMPT, [7], [-1.0], [[front.step(1, engine=engine), 1, 1]], **more)


def at_once(*processes):
    """Bring the processes to one moment."""
    now = max(process.now for process in processes)
    for process in processes:
        process.now = now


def written(*processes):
    for process in processes:
        folder = process.write()
    return open_recording(folder)


def test_api_servers_are_front_ends_of_the_engine_that_their_parent_built(tmp_path):
    parent, fronts, core = server(tmp_path, 100, "a")
    for front in fronts:
        at_once(*fronts, core)
        sampled(front)
    at_once(*fronts, core)
    core.load()
    for front in fronts:
        at_once(*fronts, core)
        sampled(front)
    recording = written(parent, *fronts, core)
    (served,) = recording.served
    assert [front.pid for front in served.fronts] == [101, 102]
    assert tokens_by_version(served) == [2, 2]
    (engine,) = recording.engines
    assert (engine.process.pid, engine.replicas, len(engine.updates)) == (100, 1, 1)
    assert [kind.requests for kind in engine.sampled] == [4]
    assert any("4 processes, 1 engine, 4 requests" in sentence for sentence in closing(tmp_path, recording, [], []))


def test_a_reset_after_a_token_of_another_front_end_of_the_engine_came_too_late(tmp_path):
    parent, (first, second), core = server(tmp_path, 100, "a")
    sampled(first)
    at_once(first, second, core)
    core.load()
    at_once(first, second, core)
    sampled(second)
    at_once(first, second, core)
    core.call(RESET, result=True)
    at_once(first, second, core)
    sampled(first)
    (served,) = written(parent, first, second, core).served
    assert [update.reset for update in served.updates] == [False]


def test_two_servers_of_one_recording_have_their_own_updates(tmp_path):
    one, other = server(tmp_path, 100, "a"), server(tmp_path, 200, "b")
    everyone = [process for parent, fronts, core in (one, other) for process in (parent, *fronts, core)]
    for front in (*one[1], *other[1]):
        sampled(front)
    at_once(*everyone)
    other[2].load()
    served = written(*everyone).served
    updates = {front.pid: len(each.updates) for each in served for front in each.fronts}
    assert updates == {101: 0, 102: 0, 201: 1, 202: 1}


def test_two_engines_of_one_process_are_told_apart(tmp_path):
    front = WrittenProcess(tmp_path, pid=100)
    front.sampling()
    cores = [WrittenProcess(tmp_path, pid=101 + place, parent=100) for place in range(2)]
    for number, core in enumerate(cores, 1):
        front.engine(number, instance_id=str(number))
        core.worker(str(number))
    for number in (1, 2):
        front.requests = 0  # each numbers its own requests
        sampled(front, engine=number)
    at_once(front, *cores)
    cores[1].load()
    at_once(front, *cores)
    for number in (1, 2, 2):
        front.requests = number
        sampled(front, engine=number)
    recording = written(front, *cores)
    served = recording.served
    assert [tokens_by_version(one) for one in served] == [[2], [1, 2]]
    sequences = list(recorded_log(tmp_path).logged())
    assert sorted(one.token_columns["rollout_version"][0] for one in sequences) == [0, 0, 0, 1, 1]
    assert len({one.sample for one in sequences}) == 4  # request 2 of the second engine came twice
    (engine,) = recording.engines
    assert engine.replicas == 2


def test_calls_of_engines_in_one_process_are_of_the_engine_that_they_name(tmp_path):
    front = WrittenProcess(tmp_path, pid=100)
    front.sampling()
    for number in (1, 2):
        front.engine(number, instance_id=str(number))
        front.worker(str(number))
        sampled(front, engine=number)
    call = front.begin(RPC, engine=2, method="reload_weights")
    front.load(inside=call)
    front.end(call, RPC)
    served = written(front).served
    assert [len(one.updates) for one in served] == [0, 1]
    assert not any(one.missing for one in served)


def test_loads_that_no_call_names_are_counted_for_each_engine_of_the_process_and_named(tmp_path):
    front = WrittenProcess(tmp_path, pid=100)
    front.sampling()
    for number in (1, 2):
        front.engine(number, instance_id=str(number))
        sampled(front, engine=number)
    front.load()
    served = written(front).served
    assert [len(one.updates) for one in served] == [1, 1]
    assert all("without a call that names the engine" in one.missing[0] for one in served)


def test_a_process_that_nothing_places_is_of_each_engine_and_named(tmp_path):
    fronts = [WrittenProcess(tmp_path, pid=100), WrittenProcess(tmp_path, pid=200)]
    for front in fronts:
        front.sampling()
        sampled(front)
    worker = WrittenProcess(tmp_path, pid=300, parent=7)
    worker.load()
    served = written(*fronts, worker).served
    assert [len(one.updates) for one in served] == [1, 1]
    assert all("may serve each of 2 engines" in one.missing[0] for one in served)


def test_what_a_judge_sampled_is_apart_from_what_the_policy_did(tmp_path):
    front = WrittenProcess(tmp_path, pid=100)
    front.sampling()
    for number, model in enumerate(("policy", "judge"), 1):
        front.engine(number, model=model, instance_id=model)
        for _ in range(number):
            step = front.step(2, engine=number)
            request = front.request(PROMPT, engine=number)
            ids = [7 + number, 3]
            front.sequence(request, PROMPT, ids, [-1.0, -1.0], [[step, 1, 2]], engine=number)
    log = recorded_log(front.write())
    assert log.group.model == "judge" and len(log.judged) == 2
    front.trainer([[8, 3]], [[-1.0, -1.0]], gradients=True)
    log = recorded_log(front.write())
    assert log.group.model == "policy" and len(log.judged) == 1
    assert any("2 sequences (4 tokens) were sampled with" in one and "judge" in one for one in not_seen(log))
