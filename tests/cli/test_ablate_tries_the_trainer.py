"""The trainer is tried on a few tokens before the first engine starts."""

import json
from pathlib import Path

import pytest
from laboratories import V1, Laboratory

from rlaudit.laboratory import scoring

BLOCK = {"name": "tried", "candidate": {"version": V1}, "repeats": 0}
TITLE = "trainer tried: float32 body, float32 head, sdpa attention"


def scripts_run(folder: Path) -> list[str]:
    """The script of every cell, in the order in which the cells were made."""
    jobs = sorted((folder / "cells").glob("*/job.json"), key=lambda path: path.stat().st_mtime_ns)
    return [Path(json.loads(path.read_text())["script"]).name for path in jobs]


def test_a_trainer_that_cannot_score_ends_the_run_before_any_engine_and_says_why(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = laboratory.folder / "score.py"
    broken.write_text("def run(job, channel):\n    raise RuntimeError('the driver is too old')\n")
    monkeypatch.setattr(scoring, "SCORE", broken)
    run = laboratory.ablate(laboratory.recipe(BLOCK))
    assert run.exit_code == 3
    assert "cannot score" in run.stderr
    assert "RuntimeError: the driver is too old" in run.stderr
    assert "--trainer-python" in run.stderr
    assert scripts_run(run.folder) == ["tokenize_prompts.py", "score.py"]
    assert "Traceback" not in run.stderr


def test_the_trial_comes_first_and_is_kept_when_a_run_is_resumed(laboratory: Laboratory) -> None:
    recipe = laboratory.recipe(BLOCK)
    first = laboratory.ablate(recipe)
    assert scripts_run(first.folder) == [
        "tokenize_prompts.py",  # the trainer's
        "score.py",
        "tokenize_prompts.py",  # what is beside the engine
        "generate.py",
        "score.py",
    ]
    assert f"ok          {TITLE}" in first.stderr
    again = laboratory.ablate(recipe)
    assert f"kept        {TITLE}" in again.stderr
    assert again.report["layers"] == first.report["layers"]


def test_the_trial_is_of_a_few_tokens_of_the_first_prompts_and_of_the_first_way_of_scoring(
    laboratory: Laboratory,
) -> None:
    run = laboratory.ablate(laboratory.recipe(BLOCK | {"factors": {"fp32-head": ["trainer"]}}, trainer={}))
    jobs = [json.loads(path.read_text()) for path in (run.folder / "cells").glob("*/job.json")]
    (trial,) = [job for job in jobs if 0 < len(job.get("sequences", ())) <= 2]
    assert (trial["dtype"], trial["head_dtype"]) == ("bfloat16", "bfloat16")
    assert all(len(one["prompt_token_ids"]) + len(one["token_ids"]) <= 16 for one in trial["sequences"])
    assert all(one["prompt_token_ids"] and one["token_ids"] for one in trial["sequences"])
