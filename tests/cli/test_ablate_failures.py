"""Arms that fail: the others finish, each failure names its boundary and its root cause, and the exit code is 3."""

from typing import Any

import pytest
from filelock import FileLock
from laboratories import V0, V1, Laboratory, Run

from rlaudit.engines.environments import environment
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.errors import NotFinished
from rlaudit.laboratory import run_setup

ILL = {
    "unknown argument": {"engine_args": {"no_such_argument": 1}},
    "too slow": {"environment_variables": {"FAKE_VLLM_AILMENT": "hangs"}, "timeout_minutes": 0.03},
    "killed": {"environment_variables": {"FAKE_VLLM_AILMENT": "killed"}},
    "core dies": {"environment_variables": {"FAKE_VLLM_AILMENT": "engine-core-dies"}},
    "no memory": {"environment_variables": {"FAKE_VLLM_AILMENT": "out-of-memory"}},
    "nan": {"environment_variables": {"FAKE_VLLM_AILMENT": "nan"}},
    "positive": {"environment_variables": {"FAKE_VLLM_AILMENT": "positive"}},
}
BLOCK: dict[str, Any] = {
    "name": "ill",
    "reference": {"version": V0},
    "candidate": {"version": V1},
    "factors": {"logprobs-mode": "processed"},
    "repeats": 0,
    "arms": [{"name": name, **arm} for name, arm in ILL.items()],
}


@pytest.fixture(scope="module")
def ill(shared_laboratory: Laboratory) -> Run:
    return shared_laboratory.ablate(shared_laboratory.recipe(BLOCK))


@pytest.mark.parametrize(
    ("name", "boundary", "words"),
    [
        ("unknown argument", "load", "TypeError: EngineArgs.__init__() got an unexpected keyword argument"),
        ("too slow", "timeout", "no result after 2 s"),
        ("killed", "died", "the worker was ended by SIGKILL"),
        ("core dies", "load", "ValueError: the block size 17 is not a multiple of 16"),
        ("no memory", "out-of-memory", "torch.OutOfMemoryError: CUDA out of memory"),
        ("nan", "integrity", "the rollout logprobs: nan at 384 of 384 tokens"),
        ("positive", "integrity", "the rollout logprobs: positive logprob at 384 of 384 tokens"),
    ],
)
def test_a_failed_arm_names_its_boundary_and_its_root_cause(ill: Run, name: str, boundary: str, words: str) -> None:
    arm = ill.arm(name)
    assert arm["status"] == "failed"
    assert arm["error"]["boundary"] == boundary
    assert words in arm["error"]["message"]
    assert "\n" not in arm["error"]["message"]
    assert f"{name!r} failed ({boundary}): " in "\n".join(ill.report["not_seen"])
    assert words in ill.stdout


def test_an_arm_whose_model_is_nowhere_is_refused_before_anything_starts(laboratory: Laboratory) -> None:
    block = {**BLOCK, "arms": [{"name": "elsewhere", "model": "/nowhere/checkpoint"}]}
    refused = laboratory.ablate(laboratory.recipe(block))
    assert refused.exit_code == 2
    assert "there is no model '/nowhere/checkpoint'" in refused.stderr
    assert not (refused.folder / "cells").exists()


def test_the_other_arms_are_finished_and_judged(ill: Run) -> None:
    assert {arm["name"] for arm in ill.report["arms"] if arm["status"] == "ok"} == {
        "reference",
        "candidate",
        "candidate + logprobs-mode=processed",
    }
    assert ill.layer("semantic")["verdict"] == "mismatch"
    assert ill.effects() == {"logprobs-mode=processed": "removes the mismatch"}


def test_a_run_with_a_failed_arm_is_not_finished_whatever_the_others_say(ill: Run) -> None:
    assert ill.exit_code == 3
    assert ill.report["exit_code"] == 3


def test_broken_logprobs_never_reach_a_figure(ill: Run) -> None:
    assert ill.arm("nan")["measurements"] == {}
    assert ill.arm("positive")["measurements"] == {}


def test_a_daemon_that_an_engine_leaves_behind_is_ended_with_its_cell(laboratory: Laboratory) -> None:
    block = {"name": "daemon", "candidate": {"version": V1}, "repeats": 0}
    recipe = laboratory.recipe(block, environment_variables={"FAKE_VLLM_AILMENT": "leaves-a-daemon"})
    # The laboratory fails a test that leaves a process behind.
    assert laboratory.ablate(recipe).arm("candidate")["status"] == "ok"


def test_when_the_candidate_has_no_figures_no_layer_is_judged(laboratory: Laboratory) -> None:
    block = {"name": "dead", "candidate": {"version": V1}, "repeats": 0}
    recipe = laboratory.recipe(block, environment_variables={"FAKE_VLLM_AILMENT": "engine-core-dies"})
    run = laboratory.ablate(recipe)
    assert {layer["verdict"] for layer in run.report["layers"]} == {"not tested"}
    assert run.exit_code == 3
    semantic = run.layer("semantic")
    assert "failed, " in semantic["because"]
    assert "arms that ended well are kept" in semantic["next"]


def test_a_second_rlaudit_in_one_run_directory_is_told_so_and_touches_nothing(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe({"name": "busy", "candidate": {"version": V1}, "repeats": 0})
    laboratory.run_dir.mkdir()
    plan = laboratory.run_dir / "plan.json"
    plan.write_text("the other run's")
    with FileLock(laboratory.run_dir / ".lock"):
        run = laboratory.ablate(recipe)
    assert run.exit_code == 3
    assert f"another rlaudit is running in {laboratory.run_dir}" in run.stderr
    assert run.stdout == ""
    assert plan.read_text() == "the other run's"
    assert not (laboratory.run_dir / "cells").exists()


def test_a_run_stops_when_the_reference_s_engine_cannot_be_had(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(spec: EnvironmentSpec, update: Any) -> Environment:
        if spec.version == "0.9.2":
            raise NotFinished("its wheel cannot be fetched")
        return environment.ensure(spec, update)

    monkeypatch.setattr(run_setup, "ensure", ensure)
    ran = laboratory.ablate(laboratory.recipe({**BLOCK, "reference": {"version": "0.9.2"}, "arms": []}))
    assert ran.exit_code == 3 and "vLLM 0.9.2: its wheel cannot be fetched" in ran.stderr
    assert not ran.report and not (ran.folder / "cells").exists()
