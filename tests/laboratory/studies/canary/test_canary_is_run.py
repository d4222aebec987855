"""A whole canary, from recipe to report, on a stand-in engine and a stand-in trainer in processes of their own."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_engine import FAKES, carried_out

from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.canary import run as canary_run
from rlaudit.laboratory.studies.canary.plan import plan_trainings
from rlaudit.laboratory.studies.canary.recipe import training_recipe_of
from rlaudit.laboratory.studies.canary.run import FinishedCanary, execute
from rlaudit.report.of_trainings import document_of

HERE = Path(__file__).parent
DOCUMENT: dict[str, Any] = {
    "schema": "rlaudit-recipe/1",
    "environment_variables": {"PYTHONPATH": str(FAKES)},
    "training": {"seeds": 2, "steps": 20, "max_tokens": 2},
    "arms": [{"name": "before", "version": "0.18.1"}, {"name": "after", "version": "0.18.1", "updates": {"every": 2}}],
}


def run_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FinishedCanary:
    monkeypatch.setattr(canary_run, "TRAIN", HERE / "stand_ins" / "train.py")
    prompts = PromptSet("sums", ({"prompt_token_ids": [1, 2]}, {"prompt_token_ids": [3, 4]}), ([1], [2]))
    recipe = training_recipe_of(DOCUMENT, Path("x.yaml"))
    run: FinishedCanary = carried_out(folder, prompts, partial(plan_trainings, recipe), execute)
    return run


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
