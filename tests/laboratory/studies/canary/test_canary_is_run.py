"""A whole canary, from recipe to report, on a stand-in engine and a stand-in trainer in processes of their own."""

import sys
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.cells.executor import OneAtATime
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.models.model import ModelOnDisk
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.run_folder import opened
from rlaudit.laboratory.run_setup import RunSetup
from rlaudit.laboratory.studies.canary import plan as canary_plan
from rlaudit.laboratory.studies.canary import run as canary_run
from rlaudit.laboratory.studies.canary.recipe import training_recipe_of
from rlaudit.laboratory.studies.canary.run import FinishedCanary, execute
from rlaudit.laboratory.study_run import StudyRun
from rlaudit.report.of_trainings import document_of
from rlaudit.text.progress import Progress

HERE = Path(__file__).parent
DOCUMENT: dict[str, Any] = {
    "schema": "rlaudit-recipe/1",
    "environment_variables": {"PYTHONPATH": str(HERE.parent / "updates" / "fake_vllm")},
    "training": {"seeds": 2, "steps": 20, "max_tokens": 2},
    "arms": [{"name": "before", "version": "0.18.1"}, {"name": "after", "version": "0.18.1", "updates": {"every": 2}}],
}


def run_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedCanary:
    # The stand-in takes none of the arguments that a CPU engine is given.
    monkeypatch.setattr(canary_plan, "usual_engine_args", lambda version, dtype, device: {})
    monkeypatch.setattr(canary_run, "TRAIN", HERE / "stand_ins" / "train.py")
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "weights.json").write_text('{"version": 0}')
    specs = [EnvironmentSpec("vllm", "0.18.1", "cpu"), EnvironmentSpec("trainer", "4.57.6", "cpu")]
    engine, trainer = (Environment(spec, folder, (sys.executable,)) for spec in specs)
    prompts = PromptSet("sums", ({"prompt_token_ids": [1, 2]}, {"prompt_token_ids": [3, 4]}), ([1], [2]))
    model_on_disk = ModelOnDisk(str(model), None, "sha256:0", "a stand-in")
    accelerator = detect(cpu=True)
    here = OneAtATime(folder / "run" / "cells", GpuMemory(()))
    around = RunSetup(accelerator, {"0.18.1": engine}, trainer, model_on_disk, prompts, 0.0)
    plan = canary_plan.plan_trainings(training_recipe_of(DOCUMENT, Path("x.yaml")), accelerator, prompts)
    with opened(folder / "run") as kept:
        return execute(plan, StudyRun(plan, kept, around, here, Progress(quiet=True)))


def test_every_arm_is_trained_with_every_seed_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in(tmp_path, monkeypatch)
    names = ["before, seed 0", "after, seed 0", "before, seed 1", "after, seed 1"]
    assert [(one.run.name, one.status) for one in run.trainings] == [(name, "ok") for name in names]
    assert all(one.curves is not None and len(one.curves.curves["rl/reward"].steps) == 20 for one in run.trainings)
    assert document_of(run, fails=True)["exit_code"] in (0, 1)
    again = run_in(tmp_path, monkeypatch)
    # The prompts' ids are a cell as well.
    assert (again.bookkeeping.cells_run, again.bookkeeping.cells_kept) == (0, 5)


def test_a_training_whose_engine_is_killed_is_the_only_one_that_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kill-once").touch()
    run = run_in(tmp_path, monkeypatch)
    assert [one.status for one in run.trainings] == ["failed", "ok", "ok", "ok"]
    assert document_of(run, fails=True)["exit_code"] == 3
    again = run_in(tmp_path, monkeypatch)
    assert [one.status for one in again.trainings] == ["ok"] * 4
    assert (again.bookkeeping.cells_run, again.bookkeeping.cells_kept) == (1, 4)
