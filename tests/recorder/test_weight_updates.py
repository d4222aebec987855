import math

from recorder_folder import tokens_by_version
from written_recording import WrittenProcess

from rlaudit.recording.recording import open_recording

RESET = "vllm.v1.engine.core:EngineCore.reset_prefix_cache"
RPC = "vllm.v1.engine.core:EngineCore.collective_rpc"
PAUSE = "vllm.v1.engine.async_llm:AsyncLLM.pause_generation"
RESUME = "vllm.v1.engine.async_llm:AsyncLLM.resume_generation"
LAYERS = ("embed", "layer.0", "layer.1", "head")


def served(*processes):
    for process in processes:
        folder = process.write()
    (found,) = open_recording(folder).served
    return found


def test_each_load_between_tokens_is_an_update(tmp_path):
    process = WrittenProcess(tmp_path)
    for _ in range(3):
        process.step(10)
        process.load()
        process.call(RESET, result=True)
    process.step(7)
    found = served(process)
    assert [(one.tensors, one.how, one.reset, one.pause) for one in found.updates] == [
        (2, ("load_weights",), True, None)
    ] * 3
    assert tokens_by_version(found) == [10, 10, 10, 7]
    assert found.updates[0].order == ("load_weights of 2 tensors", "reset_prefix_cache()")


def test_weights_loaded_twice_before_a_token_are_two_updates(tmp_path):
    process = WrittenProcess(tmp_path)
    process.load()
    process.load()
    process.step(5)
    found = served(process)
    assert len(found.updates) == 2
    assert tokens_by_version(found) == [0, 0, 5]
    assert found.first_sampled == 2


def test_an_update_tensor_by_tensor_with_tokens_in_between_is_one(tmp_path):
    process = WrittenProcess(tmp_path)
    process.step(4)
    for _ in range(2):
        for number, layer in enumerate(LAYERS):
            call = process.begin(RPC, in_flight=9, method="receive_weight_update")
            process.load((layer,), inside=call, number=number)
            process.end(call, RPC)
            process.step(3)
    found = served(process)
    assert [one.tensors for one in found.updates] == [len(LAYERS)] * 2
    assert [one.how for one in found.updates] == [("receive_weight_update",)] * 2
    assert found.updates[0].in_flight == 9


def test_parts_with_a_resumption_and_tokens_in_between_are_two_updates(tmp_path):
    process = WrittenProcess(tmp_path)
    process.load(LAYERS[:2], number=0)
    process.call(RESUME)
    process.step(3)
    process.load(LAYERS[2:], number=1)
    assert [one.tensors for one in served(process).updates] == [2, len(LAYERS) - 2]


def test_the_protocol_around_an_update_is_kept_in_order(tmp_path):
    process = WrittenProcess(tmp_path)
    process.step(4)
    process.call(PAUSE, mode="keep", clear_cache=False)
    call = process.begin(RPC, in_flight=12, method="reload_weights")
    process.load(LAYERS, inside=call)
    process.end(call, RPC)
    process.call(RESUME)
    process.step(4)
    process.call(RESET, result=True)
    (update,) = served(process).updates
    assert (update.pause, update.clear_cache, update.reset, update.in_flight) == ("keep", False, False, 12)
    assert update.order == (
        "pause_generation(mode=keep, clear_cache=False)",
        "collective_rpc(method=reload_weights)",
        "load_weights of 4 tensors",
        "resume_generation()",
    )


def test_a_refused_reset_is_no_reset(tmp_path):
    process = WrittenProcess(tmp_path)
    process.load()
    process.call(RESET, result=False)
    process.step(4)
    (update,) = served(process).updates
    assert update.reset is False
    assert update.order[-1] == "reset_prefix_cache() -> False"


def test_a_reset_with_requests_in_flight_of_which_the_release_does_not_say_if_it_refused_is_unknown(tmp_path):
    process = WrittenProcess(tmp_path)
    for in_flight in (0, 3):
        process.load()
        process.call(RESET, result=None, in_flight=in_flight)
        process.step(4)
    assert [update.reset for update in served(process).updates] == [True, None]


def test_a_pause_that_was_resumed_belongs_to_no_later_update(tmp_path):
    process = WrittenProcess(tmp_path)
    process.call(PAUSE, mode="abort")
    process.call(RESUME)
    process.step(4)
    process.load()
    (update,) = served(process).updates
    assert update.pause is None


def test_calls_that_move_weights_without_a_load_are_updates(tmp_path):
    process = WrittenProcess(tmp_path)
    for _ in range(2):
        process.step(1)
        process.call(RPC, method="start_weight_update")
        process.call(RPC, method="update_weights")
        process.step(2)
        process.call(RPC, method="update_weights")
        process.call(RPC, method="finish_weight_update")
    process.step(8)
    found = served(process)
    assert [one.how for one in found.updates] == [("start_weight_update", "update_weights", "finish_weight_update")] * 2


def test_a_call_that_moves_no_weights_is_no_update(tmp_path):
    process = WrittenProcess(tmp_path)
    process.step(1)
    process.call(RPC, method="get_cache_stats")
    process.call("vllm.v1.engine.core:EngineCore.sleep", level=1)
    assert served(process).updates == ()


def test_workers_that_load_the_same_weights_at_once_make_one_update(tmp_path):
    front, core = WrittenProcess(tmp_path, pid=100), WrittenProcess(tmp_path, pid=101, parent=100)
    workers = [WrittenProcess(tmp_path, pid=pid, parent=101) for pid in (102, 103)]
    for _ in range(3):
        front.step(10)
        call = core.begin(RPC, method="reload_weights", in_flight=2)
        for worker in workers:
            worker.now = core.now
            worker.load(LAYERS)
        core.now = max(worker.now for worker in workers)
        core.end(call, RPC)
        front.now = core.now = core.now + 1
    front.step(5)
    found = served(front, core, *workers)
    assert [(one.tensors, one.how) for one in found.updates] == [(len(LAYERS), ("reload_weights", "load_weights"))] * 3
    assert tokens_by_version(found) == [10, 10, 10, 5]


def test_tokens_within_an_update_are_of_the_version_before(tmp_path):
    process = WrittenProcess(tmp_path)
    process.step(1)
    call = process.begin(RPC, method="update_weights")
    process.step(6)
    inside = process.now
    process.end(call, RPC)
    process.step(1)
    found = served(process)
    assert (found.version_at(inside), found.version_at(process.now)) == (0, 1)


def test_an_update_that_did_not_end_leaves_all_later_tokens_of_the_version_before(tmp_path):
    process = WrittenProcess(tmp_path)
    process.step(1)
    process.begin(RPC, method="update_weights")
    process.step(6)
    found = served(process)
    assert found.updates[0].end is None and found.version_at(process.now) == 0
    assert found.next_begin(process.now) == math.inf


def test_a_lost_end_of_a_load_does_not_swallow_the_updates_after_it(tmp_path):
    process = WrittenProcess(tmp_path)
    for _ in range(4):
        process.step(10)
        process.load()
    ends = [place for place, line in enumerate(process.lines) if line["kind"] == "load" and line["side"] == "end"]
    del process.lines[ends[1]]
    assert len(served(process).updates) == 4


def test_steps_whose_lines_are_lost_are_named(tmp_path):
    process = WrittenProcess(tmp_path)
    process.step(10)
    process.steps += 5
    process.step(10)
    found = served(process)
    assert tokens_by_version(found) == [20]
    assert len(found.steps.stamps) == 7
    assert any("in no line that can be read" in one for one in found.missing)


def test_two_engines_of_one_host_have_their_own_updates(tmp_path):
    first, second = WrittenProcess(tmp_path, pid=100), WrittenProcess(tmp_path, pid=200)
    worker = WrittenProcess(tmp_path, pid=201, parent=200)
    for process in (first, second):
        process.step(3)
    worker.load()
    for process in (first, second, worker):
        process.write()
    counts = {one.fronts[0].pid: len(one.updates) for one in open_recording(tmp_path).served}
    assert counts == {100: 0, 200: 1}
