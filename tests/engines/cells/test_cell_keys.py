"""What makes a cell another cell: everything that can change its result, and nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.cells import cell as cells
from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import PACKAGE
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.studies.arms.plan import Arm, BlockPlan, make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe
from rlaudit.laboratory.studies.arms.rollout import requests, rollout_cell
from rlaudit.vllm.machine import machine_named

ENGINE = Environment(EnvironmentSpec("vllm", "0.18.1", "cpu"), Path("/e"), ("/e/bin/python",), lock=("vllm==0.18.1",))


def block_of(**keys: Any) -> tuple[Recipe, BlockPlan]:
    block = {"name": "one", "candidate": {"version": "0.18.1"}, **keys}
    recipe = Recipe.model_validate({"blocks": [block]})
    return recipe, make_plan(recipe).blocks[0]


def context(recipe: Recipe, **changes: Any) -> RolloutContext:
    plain = RolloutContext(
        model="/m",
        revision=None,
        timeout_minutes=recipe.timeout_minutes,
        seed=recipe.seed,
        model_identity={"weights": "sha256:1"},
        accelerator_identity={"name": "a processor"},
        device="cpu",
        machine=machine_named("cpu"),
        prompt_token_ids=[[1, 2], [3]],
    )
    return replace(plain, **changes)


def cell_of(name: str, engine: Environment = ENGINE, changes: dict[str, Any] | None = None, **keys: Any) -> Cell:
    recipe, block = block_of(**keys)
    arm: Arm = next(arm for arm in block.arms if arm.name == name)
    return rollout_cell(context(recipe, **(changes or {})), block.settings, arm, engine)


def test_a_repeat_is_a_cell_of_its_own_and_arms_that_differ_in_their_trainer_only_share_one() -> None:
    factors = {"fp32-head": ["trainer", "rollout"]}
    candidate = cell_of("candidate", factors=factors)
    assert cell_of("candidate + fp32-head=trainer", factors=factors).key == candidate.key
    assert cell_of("candidate + fp32-head=rollout", factors=factors).key != candidate.key
    assert cell_of("candidate again").key != cell_of("candidate").key
    # A longer timeout keeps what is done.
    assert replace(candidate, timeout_seconds=1.0).key == candidate.key


@pytest.mark.parametrize(
    "changed",
    [
        cell_of("candidate", samples=3),
        cell_of("candidate", max_tokens=3),
        cell_of("candidate", engine_args={"seed": 1}),
        cell_of("candidate", environment_variables={"A": "1"}),
        cell_of("candidate", sampling={"temperature": 0.5}),
        cell_of("candidate", changes={"prompt_token_ids": [[1, 2], [4]]}),
        cell_of("candidate", changes={"model_identity": {"weights": "sha256:2"}}),
        cell_of("candidate", changes={"accelerator_identity": {"name": "another"}}),
        cell_of("candidate", replace(ENGINE, lock=("vllm==0.18.1", "torch==2.10"))),
    ],
)
def test_whatever_can_change_a_result_changes_the_key(changed: Cell) -> None:
    assert changed.key != cell_of("candidate").key


def test_where_an_environment_lies_does_not_change_the_key() -> None:
    preload = {"LD_PRELOAD": "/elsewhere/libtcmalloc.so"}
    moved = replace(ENGINE, command=("/elsewhere/bin/python",), directory=Path("/elsewhere"), variables=preload)
    assert cell_of("candidate", moved).key == cell_of("candidate").key


def test_a_given_interpreter_is_told_by_what_it_holds_and_not_by_the_command_in_front_of_it() -> None:
    spec = replace(ENGINE.spec, command=("/opt/bin/python",))
    given = replace(ENGINE, spec=spec, command=spec.command)
    boxed = ("apptainer", "exec", "vllm.sif", "python3")
    in_a_box = replace(given, spec=replace(spec, command=boxed), command=boxed)
    assert cell_of("candidate", in_a_box).key == cell_of("candidate", given).key
    other = replace(in_a_box, lock=("python==3.12.1", "vllm==0.18.1"))
    assert cell_of("candidate", other).key != cell_of("candidate", given).key


def test_a_changed_worker_or_script_runs_every_cell_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = cell_of("candidate")
    before = cell.key
    worker = tmp_path / "worker.py"
    worker.write_bytes(cells.WORKER.read_bytes() + b"# changed\n")
    monkeypatch.setattr(cells, "WORKER", worker)
    with_other_worker = replace(cell).key
    monkeypatch.undo()
    script = tmp_path / Path(cell.job["script"]).name
    script.write_bytes((PACKAGE / cell.job["script"]).read_bytes())
    same_script_elsewhere = replace(cell, job={**cell.job, "script": str(script)})
    assert same_script_elsewhere.key == before
    script.write_bytes(script.read_bytes() + b"# changed\n")
    assert len({before, with_other_worker, replace(same_script_elsewhere).key}) == 3


def test_every_request_has_a_seed_of_its_own_and_the_same_in_every_arm() -> None:
    wanted = requests(prompts=5, samples=4, rounds=2, seed=3)
    assert len({request["seed"] for request in wanted}) == 20
    assert wanted == requests(prompts=5, samples=4, rounds=2, seed=3)
    factors = {"logprobs-mode": ["processed"], "batch-size": ["alone"]}
    jobs = [cell_of(name, factors=factors).job for name in ("candidate", "candidate + batch-size=alone")]
    assert jobs[0]["requests"] == jobs[1]["requests"]
    assert {request["seed"] for request in wanted}.isdisjoint(r["seed"] for r in requests(5, 4, 2, seed=4))


def test_a_request_with_several_completions_has_the_seed_of_its_first() -> None:
    alone = requests(prompts=3, samples=4, rounds=4, seed=7)
    by_two = requests(prompts=3, samples=4, rounds=4, seed=7, n=2)
    seeds = {(request["prompt"], request["sample"]): request["seed"] for request in alone}
    drawn = {(one["prompt"], one["sample"] + i): one["seed"] + i for one in by_two for i in range(2)}
    assert drawn == seeds and {request["round"] for request in by_two} == {0, 1}


def test_samples_are_spread_over_rounds_so_that_a_prompt_comes_again() -> None:
    rounds = {(request["prompt"], request["sample"]): request["round"] for request in requests(3, 4, 2, seed=0)}
    assert [rounds[1, sample] for sample in range(4)] == [0, 0, 1, 1]
    assert {request["round"] for request in requests(3, 1, 5, seed=0)} == {0}


def test_companions_of_a_factor_are_for_cuda_engines_only() -> None:
    factors = {"batch-invariance": ["on"]}
    name = "candidate + batch-invariance=on"
    on_cpu = cell_of(name, factors=factors)
    on_cuda = cell_of(name, changes={"device": "cuda"}, factors=factors)
    assert on_cpu.variables["VLLM_BATCH_INVARIANT"] == on_cuda.variables["VLLM_BATCH_INVARIANT"] == "1"
    assert on_cpu.job["optional_engine_args"] == {}
    assert on_cuda.job["optional_engine_args"] == {"attention_backend": "FLASH_ATTN"}
    assert "VLLM_ATTENTION_BACKEND" not in on_cpu.variables
    assert on_cuda.variables["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"


@pytest.mark.parametrize("dtype", ["float32", "float"])
def test_a_float32_engine_on_cuda_multiplies_in_float32(dtype: str) -> None:
    on_cuda = cell_of("candidate", engine_args={"dtype": dtype}, changes={"device": "cuda"})
    assert on_cuda.variables["TRITON_F32_DEFAULT"] == on_cuda.identity["variables"]["TRITON_F32_DEFAULT"] == "ieee"
    assert on_cuda.variables["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"] == "0"
    # Kernels that another engine compiled for TF32 are not found, and where they lie makes no other cell.
    assert "TRITON_CACHE_DIR" in on_cuda.variables
    assert "TRITON_CACHE_DIR" not in on_cuda.identity["variables"]


@pytest.mark.parametrize(
    ("device", "keys", "set_to"),
    [
        ("cpu", {"engine_args": {"dtype": "float32"}}, {}),
        ("cuda", {"engine_args": {"dtype": "bfloat16"}}, {}),
        # A recipe may ask for TF32.
        (
            "cuda",
            {"engine_args": {"dtype": "float32"}, "environment_variables": {"TRITON_F32_DEFAULT": "tf32"}},
            {"TRITON_F32_DEFAULT": "tf32", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0"},
        ),
        # A float32 head leaves the kernels of its body alone.
        ("cuda", {"factors": {"fp32-head": ["rollout"]}}, {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0"}),
    ],
)
def test_other_engines_multiply_as_they_are_told(device: str, keys: dict[str, Any], set_to: dict[str, str]) -> None:
    name = "candidate + fp32-head=rollout" if "factors" in keys else "candidate"
    variables = cell_of(name, changes={"device": device}, **keys).variables
    names = ("TRITON_F32_DEFAULT", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TRITON_CACHE_DIR")
    assert {name: variables[name] for name in names if name in variables} == set_to


def test_a_source_that_is_changed_while_a_cell_runs_does_not_move_its_folder(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("before")
    cell = Cell(job={"script": str(script)}, command=("python",), variables={}, timeout_seconds=1.0, identity={})
    key = cell.key
    script.write_text("after")
    assert cell.key == key
    assert replace(cell).key != key
