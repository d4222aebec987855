"""`rlaudit cell run`: one cell of a run, alone."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratories import V1, Laboratory, Run

PROCESSED = {"version": V1, "levels": {"logprobs-mode": "processed"}}


@pytest.fixture(autouse=True)
def all_cores() -> Iterator[None]:
    """A cell of a part of the processor keeps this process to it."""
    cores = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, cores)


def block(**more: Any) -> dict[str, Any]:
    return {"name": "one", "candidate": PROCESSED, "repeats": 0, **more}


def alone(laboratory: Laboratory, key: str, run_dir: Path | None = None) -> Run:
    return laboratory.command("cell", "run", str(run_dir or laboratory.run_dir), key)


def unfinished(run_dir: Path) -> list[str]:
    """Names of the rollout cells that have no samples."""
    return sorted(
        path.parent.name
        for path in run_dir.glob("cells/*/job.json")
        if "sampling" in json.loads(path.read_text()) and not (path.parent / "samples.jsonl").exists()
    )


def test_a_cell_that_failed_is_run_again_alone_and_the_run_takes_it_up(laboratory: Laboratory) -> None:
    sickness = laboratory.folder / "sickness"
    sickness.touch()
    ailing = {"FAKE_VLLM_AILMENT": "engine-core-dies", "FAKE_VLLM_WHILE": str(sickness)}
    recipe = laboratory.recipe(block(environment_variables=ailing))
    assert laboratory.ablate(recipe).exit_code == 3
    (key,) = unfinished(laboratory.run_dir)
    assert alone(laboratory, key).exit_code == 3
    sickness.unlink()
    run = alone(laboratory, key[:6])
    assert run.exit_code == 0 and run.stdout.startswith(f"ok {key}")
    assert "kept" in alone(laboratory, key).stderr
    whole = laboratory.ablate(recipe)
    # Only the scores: the rollout was there.
    assert whole.report["run"]["cells_run"] == 1
    assert whole.report["arms"][0]["status"] == "ok"


def test_cells_that_a_shard_left_can_be_run_by_name(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(block(repeats=2))
    laboratory.ablate(recipe, "--shard", "1/3", "--jobs", "1")
    (folder,) = laboratory.run_dir.glob("shard-*")
    left = unfinished(folder)
    assert len(left) == 2
    assert [alone(laboratory, key, folder).exit_code for key in left] == [0, 0]
    # The scores were asked for after the arm that decides, and all sampled the same.
    assert laboratory.ablate(recipe).report["run"]["cells_run"] == 0


def test_another_machine_than_it_was_planned_for_is_refused(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(block())
    laboratory.ablate(recipe, "--shard", "1/1")
    (folder,) = laboratory.run_dir.glob("shard-*")
    (cell,) = (path.parent for path in folder.glob("cells/*/samples.jsonl"))
    for name in ("seal.json", "result.json"):
        (cell / name).unlink()
    core = os.sched_getaffinity(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "7")
        run = alone(laboratory, cell.name, folder)
    os.sched_setaffinity(0, core)
    assert run.exit_code == 3 and "planned for another machine" in run.stderr and "OMP_NUM_THREADS" in run.stderr
    assert alone(laboratory, cell.name, folder).exit_code == 0


def test_a_name_that_is_none_or_that_of_several_is_refused(laboratory: Laboratory) -> None:
    laboratory.ablate(laboratory.recipe(block()))
    assert "There are: " in alone(laboratory, "nothing").stderr
    run = alone(laboratory, "")
    assert run.exit_code == 2 and "several cells" in run.stderr


def test_a_cell_whose_secrets_are_kept_nowhere_is_left_to_the_run(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(block(environment_variables={"MY_API_KEY": "hf_0123456789abcdefghij"}))
    laboratory.ablate(recipe)
    (cell,) = (path.parent for path in laboratory.run_dir.glob("cells/*/samples.jsonl"))
    assert "hf_0123456789" not in (cell / "cell.json").read_text()
    for name in ("seal.json", "result.json"):
        (cell / name).unlink()
    run = alone(laboratory, cell.name)
    assert run.exit_code == 3 and "secrets" in run.stderr
