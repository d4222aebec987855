"""Updates of an engine's weights, as the lines of its processes show them."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from recorder_folder import tokens_by_version
from written_recording import WrittenProcess

TABLE = yaml.safe_load(Path(__file__).with_name("weight_updates.yaml").read_text())


@pytest.mark.parametrize("sentence", TABLE)
def test_a_recording_says_of_updates_what_the_table_says(sentence: str, tmp_path: Path) -> None:
    case = TABLE[sentence]
    found = WrittenProcess(tmp_path).play(case["course"]).served()
    wanted = case["updates"] if isinstance(case["updates"], list) else [case.get("each", {})] * case["updates"]
    assert [
        {name: plain(getattr(one, name)) for name in more} for one, more in zip(found.updates, wanted, strict=True)
    ] == wanted
    assert tokens_by_version(found) == case.get("tokens", tokens_by_version(found))


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def test_the_first_version_that_sampled_is_known(tmp_path: Path) -> None:
    assert WrittenProcess(tmp_path).play(["load", "load", 5]).served().first_sampled == 2


def test_after_an_update_that_did_not_end_no_other_begins(tmp_path: Path) -> None:
    process = WrittenProcess(tmp_path)
    process.begin("vllm.v1.engine.core:EngineCore.collective_rpc", method="update_weights")
    process.step(6)
    assert process.served().next_begin(process.now) == math.inf


def test_workers_that_load_the_same_weights_at_once_make_one_update(tmp_path: Path) -> None:
    front = WrittenProcess(tmp_path)
    core = front.beside(101, parent=100)
    workers = [core.beside(pid, parent=101) for pid in (102, 103)]
    for _ in range(3):
        front.step(10)
        with core.rpc("reload_weights", in_flight=2):
            begun = core.now
            for worker in workers:
                worker.now = begun
                worker.load()
    front.step(5)
    found = front.served()
    assert [(one.tensors, one.how) for one in found.updates] == [(2, ("reload_weights", "load_weights"))] * 3
    assert tokens_by_version(found) == [10, 10, 10, 5]


def test_a_lost_end_of_a_load_does_not_swallow_the_updates_after_it(tmp_path: Path) -> None:
    process = WrittenProcess(tmp_path).play([10, "load"] * 4)
    ends = [place for place, line in enumerate(process.lines) if line["kind"] == "load" and line["side"] == "end"]
    del process.lines[ends[1]]
    assert len(process.served().updates) == 4


def test_steps_whose_lines_are_lost_are_named(tmp_path: Path) -> None:
    process = WrittenProcess(tmp_path).play([10])
    process.steps += 5
    found = process.play([10]).served()
    assert tokens_by_version(found) == [20]
    assert len(found.steps.stamps) == 7
    assert any("steps before these could not be read" in one for one in found.missing)


def test_two_engines_of_one_host_have_their_own_updates(tmp_path: Path) -> None:
    first = WrittenProcess(tmp_path).play([3])
    second = first.beside(200).play([3])
    second.beside(201, parent=200).load()
    assert {one.fronts[0].pid: len(one.updates) for one in first.opened().served} == {100: 0, 200: 1}
