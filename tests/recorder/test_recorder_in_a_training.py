"""What the recorder writes of real processes is what the engine, a stand-in, gave to its caller."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorder_folder import Written, numbers, sequences_by_version
from trainings_with_a_stand_in import ENGINES, Ended, place, run

from rlaudit.recording.recording import open_recording
from rlaudit.recording.shipped.rlaudit_recorder import PARTS

SAMPLING = ("four of each", "stop", "no logprobs", "abort")
STEPS, PROMPTS = 2, 6


@pytest.fixture(scope="module", params=ENGINES)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Ended, Written]:
    here = place(tmp_path_factory.mktemp("training"))
    ended = run(STEPS, PROMPTS, recorded=here, engine=request.param)
    assert (ended.code, ended.stderr) == (0, "")
    return request.param, ended, here.written()


def returned(ended: Ended) -> list[tuple[str, list[Any]]]:
    return [(what, sample) for what, given in ended.printed if what in SAMPLING for sample in given]


def as_float32(logprobs: Any) -> Any:
    return None if logprobs is None else tuple(np.float32(logprobs).tolist())


def test_every_token_and_logprob_is_the_one_that_the_caller_got(recorded: tuple[str, Ended, Written]) -> None:
    engine, ended, written = recorded
    # By the ids that the caller sees; V0 has logprobs of every token, asked for or not.
    left = {(one.prompt, one.ids): one for one in written.sequences() if one.finish != "abort"}
    for what, (prompt, _, ids, logprobs, finish) in returned(ended):
        one = left.pop((tuple(prompt), tuple(ids)))
        assert one.logprobs == as_float32(logprobs) or (engine == "V0" and logprobs is None)
        # V1's core does not know of a stop string in the last token that it may sample.
        assert one.finish == finish or (what, engine != "V0", one.finish) == ("stop", True, "length")
    # A sample that had ended when the others of its prompt were aborted is not returned.
    assert len(left) <= 2 * 2 * STEPS


def test_every_request_ends_in_a_sequence_or_an_abort(recorded: tuple[str, Ended, Written]) -> None:
    written = recorded[2]
    asked = STEPS * PROMPTS * (4 + 1 + 1 + 2)
    assert len(written.of_kind("request")) == len(written.of_kind("sequence")) == asked
    aborted = [sequence for sequence in written.of_kind("sequence") if sequence["finish"] == "abort"]
    assert 0 < len(aborted) == written.total("aborted")
    assert written.total("requests") == asked == written.total("sequences") + len(aborted)
    assert written.total("tokens") == sum(len(numbers(one["ids"], "<i4")) for one in written.of_kind("sequence"))


def test_steps_say_when_each_token_was_sampled(recorded: tuple[str, Ended, Written]) -> None:
    written = recorded[2]
    tokens = [count for steps in written.of_kind("steps") for count in numbers(steps["tokens"], "<i4").tolist()]
    stamps = [stamp for steps in written.of_kind("steps") for stamp in numbers(steps["stamps"], "<f8").tolist()]
    assert stamps == sorted(stamps)
    held = [0] * len(tokens)
    for sequence in written.of_kind("sequence"):
        for first, count, each in sequence["steps"]:
            for step in range(first, first + count):
                held[step] += each
    assert held == tokens


def test_tokens_behind_a_stop_string_are_recorded_and_known_as_unseen(recorded: tuple[str, Ended, Written]) -> None:
    engine, _, written = recorded
    lengths = [(one["visible"], len(numbers(one["ids"], "<i4"))) for one in written.of_kind("sequence")]
    assert all(visible <= sampled for visible, sampled in lengths)
    assert any(visible < sampled for visible, sampled in lengths) or engine == "V0"


def test_every_part_of_the_engine_that_is_there_is_hooked(recorded: tuple[str, Ended, Written]) -> None:
    engine, _, written = recorded
    hooked = written.hooked()
    absent = {part for part, targets in PARTS.items() if not hooked.intersection(targets)}
    assert absent == set()
    # V1's class under V0's name is hooked where it is defined, and not twice.
    assert any(target.startswith("vllm.engine.llm_engine:") for target in hooked) == (engine == "V0")
    assert written.of_kind("failed") == written.of_kind("dropped") == []


def test_updates_are_recorded_in_order_with_their_protocol(recorded: tuple[str, Ended, Written]) -> None:
    engine, _, written = recorded
    core = next(records for records in written.files.values() if any(line["kind"] == "worker" for line in records))
    calls = [line["what"].rpartition(".")[2] for line in core if line["kind"] == "event" and line["side"] == "begin"]
    ours = [name for name in calls if name in ("sleep", "wake_up", "collective_rpc", "reset_prefix_cache")]
    assert [name for place, name in enumerate(ours) if ours[place - 1 : place] != [name]][:4] == [
        "sleep", "wake_up", "collective_rpc", "reset_prefix_cache",
    ]  # fmt: skip
    if engine != "V0":
        (begin, _) = written.events("AsyncLLM.pause_generation")
        assert begin["arguments"] == {"mode": "keep", "clear_cache": False}
    (refused,) = [event for event in written.events("collective_rpc", "end") if event["error"]]
    assert refused["error"] == "ValueError: the shape of embed.weight is not (1, 1)"


def test_calls_with_one_tensor_each_are_written_once_with_their_number(recorded: tuple[str, Ended, Written]) -> None:
    written = recorded[2]
    repeats = [record["count"] for record in written.of_kind("repeats")]
    assert repeats[:STEPS] == [3] * STEPS
    begun = [event for event in written.events("collective_rpc") if event["arguments"]["method"] == "update_weight"]
    assert len(begun) == STEPS + 1  # and the refused one


def test_a_load_ends_where_a_tensor_comes_again(recorded: tuple[str, Ended, Written]) -> None:
    engine, _, written = recorded
    loads = [record for record in written.of_kind("load") if record["side"] == "end" and record["inside"] is None]
    assert len(loads) == (2 * STEPS if engine in ("V1", "V0") else 0)
    names = {record["tensors"]: record["names"] for record in written.of_kind("tensors")}
    assert all(len(names[record["tensors"]]) == 4 for record in loads)


def test_a_core_of_its_own_writes_its_own_file_and_nothing_of_the_front_ends(
    recorded: tuple[str, Ended, Written],
) -> None:
    engine, _, written = recorded
    if "core" not in engine:
        assert len(written.files) == 1
        return
    core, front = sorted(written.files.values(), key=lambda records: "engine" in {line["kind"] for line in records})
    assert core[0]["parent"] == front[0]["pid"] != core[0]["pid"]
    assert {line["kind"] for line in core}.isdisjoint(("prompt", "request", "sequence", "steps", "engine", "sampling"))
    assert {line["kind"] for line in front}.isdisjoint(("worker", "model", "load", "tensors"))
    assert core[-1]["kind"] == front[-1]["kind"] == "totals" and core[-1]["ended"] and front[-1]["ended"]


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    here = place(tmp_path)
    assert run(1, 2, recorded=here).code == 0
    assert {file.stat().st_mode & 0o777 for file in here.out.iterdir()} == {0o600}
    assert here.out.stat().st_mode & 0o777 == 0o700


TWO_ENGINES = """
import vllm
from vllm.sampling_params import SamplingParams

if __name__ == "__main__":
    one, other = vllm.LLM(model="one"), vllm.LLM(model="another")
    for llm in (one, other):
        llm.generate([[1, 2, 3], [4, 5, 6]], SamplingParams(n=2, logprobs=0))
    other.llm_engine.collective_rpc("reload_weights")
    for llm in (one, other, other):
        llm.generate([[1, 2, 3]], SamplingParams(n=2, logprobs=0))
    for llm in (one, other):
        llm.llm_engine.shutdown()
"""


@pytest.mark.parametrize("engine", ["V1", "V1, spawned core"])
def test_two_engines_of_one_process_that_name_their_requests_alike_are_told_apart(engine: str, tmp_path: Path) -> None:
    here = place(tmp_path)
    assert run(recorded=here, program=written_to(tmp_path, TWO_ENGINES), engine=engine).code == 0
    written = here.written()
    for kind in ("request", "sequence"):
        assert [one["engine"] for one in written.of_kind(kind)] == [1] * 4 + [2] * 4 + [1] * 2 + [2] * 4
    names = [record["request"] for record in written.of_kind("request")]
    assert len(set(names)) < len(names)
    first, second = open_recording(here.out).served
    assert [len(one.updates) for one in (first, second)] == [0, 1]
    assert [sequences_by_version(served) for served in (first, second)] == [[6], [4, 4]]
    assert not first.missing and not second.missing


def written_to(folder: Path, program: str) -> Path:
    """Write a program: a process that is spawned imports it."""
    path = folder / "program.py"
    path.write_text(program)
    return path


FORKS_LATE = """
import os, sys, threading
import multiprocessing
import vllm
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams

def held():
    links = [os.readlink("/proc/self/fd/" + one) for one in os.listdir("/proc/self/fd") if one.isdigit() and
             os.path.islink("/proc/self/fd/" + one)]
    return threading.active_count(), [link for link in links if os.environ["RLAUDIT_RECORD"] in link]

def child():
    EngineArgs(model="of the child").create_engine_config()
    print("child", *held(), flush=True)

if __name__ == "__main__":
    EngineArgs(model="before").create_engine_config()
    print("before", *held(), flush=True)
    llm = vllm.LLM(model="of the parent")
    print("engine", *held(), flush=True)
    llm.generate([[1, 2, 3], [4, 5, 6]], SamplingParams(n=4, logprobs=0))
    context = multiprocessing.get_context("fork")
    forked = context.Process(target=child, name="Child")
    forked.start()
    llm.generate([[1, 2, 3], [7, 8, 9]], SamplingParams(n=4, logprobs=0))
    forked.join()
    print("after", forked.exitcode)
"""


def test_no_thread_runs_before_the_first_request_and_a_fork_while_one_writes_takes_nothing_along(
    tmp_path: Path,
) -> None:
    here = place(tmp_path)
    ended = run(recorded=here, program=FORKS_LATE)
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[:2] == ["before 1 []", "engine 1 []"]
    # The child has the thread that ran `child`, and that alone. A fork within a write may take the open file along; no
    # line comes of it.
    after, child_has = sorted(ended.stdout.splitlines()[2:])
    assert after == "after 0" and child_has.startswith("child 1 [")
    written = here.written()
    child, parent = sorted(written.files.values(), key=len)
    assert child[0]["parent"] == parent[0]["pid"]
    assert [line["written"]["model"] for line in child if line["kind"] == "engine"] == ["of the child"]
    assert [line for line in child if line["kind"] in ("prompt", "request", "sequence", "steps", "sampling")] == []
    assert [line["written"]["model"] for line in parent if line["kind"] == "engine"] == ["before", "of the parent"]
    assert len([line for line in parent if line["kind"] == "sequence"]) == 16
    assert all(str(records[0]["pid"]) in name for name, records in written.files.items())


@pytest.mark.parametrize("plugins", ["", "another_one"])
def test_a_list_of_plug_ins_without_the_recorder_does_not_keep_it_out(plugins: str, tmp_path: Path) -> None:
    here = place(tmp_path)
    ended = run(1, 2, recorded=here, VLLM_PLUGINS=plugins)
    assert ended.by_the_program == run(1, 2, VLLM_PLUGINS=plugins).by_the_program
    written = here.written()
    assert len(written.of_kind("sequence")) == 2 * (4 + 1 + 1 + 2)
    assert written.of_kind("process")[0]["environment"]["VLLM_PLUGINS"] == plugins


@pytest.mark.parametrize("engine", ["V1", "V1, spawned core"])
def test_logprobs_that_only_the_recorder_asked_for_are_recorded_and_not_returned(engine: str, tmp_path: Path) -> None:
    here = place(tmp_path, logprobs=True)
    ended = run(1, 3, recorded=here, engine=engine)
    assert ended == run(1, 3, engine=engine)
    (unasked,) = [given for what, given in ended.printed if what == "no logprobs"]
    assert all(logprobs is None for _, _, _, logprobs, _ in unasked)
    recorded = {(one.prompt, one.ids): one.logprobs for one in here.written().sequences()}
    assert all(recorded[tuple(prompt), tuple(ids)] for prompt, _, ids, _, _ in unasked)


def test_a_package_with_plug_ins_of_vllm_is_among_the_packages_of_a_process(tmp_path: Path) -> None:
    # They may change anything in it.
    for name, group in (("acme-npu", "vllm.platform_plugins"), ("acme-cli", "console_scripts")):
        folder = tmp_path / f"{name.replace('-', '_')}-1.2.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.0\n")
        (folder / "entry_points.txt").write_text(f"[{group}]\nnpu = acme:register\n")
    here = place(tmp_path)
    program = f"import sys; sys.path.append({str(tmp_path)!r}); import training; training.main(1, 2)"
    assert run(recorded=here, program=program).code == 0
    versions = here.written().of_kind("process")[0]["versions"]
    assert versions["acme-npu"] == "1.2.0" and not {"acme-cli", "rlaudit-recorder"} & set(versions)
