"""Real engines on a GPU: arms in bfloat16, a weight update, and faults planted blind. `pytest -m gpu`, minutes.

Nothing is fetched or built. What to run with is a setting of these tests, and of nothing else:

    RLAUDIT_GPU_PYTHON           VERSION=COMMAND of an interpreter that holds a vLLM, as `--python` takes it, such as
                                 0.26.0=/opt/vllm/bin/python
    RLAUDIT_GPU_TRAINER_PYTHON   COMMAND of one with torch and transformers, as `--trainer-python` takes it
    RLAUDIT_GPU_MODEL            a checkpoint, as `--model` takes it

Without any of them, or without a GPU, they are skipped and say why.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlaudit.cli.app import run
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.errors import NotFinished

RELEASE = "0.18.1"  # of the recipes beside this file
OPTIONS = {
    "--python": "RLAUDIT_GPU_PYTHON",
    "--trainer-python": "RLAUDIT_GPU_TRAINER_PYTHON",
    "--model": "RLAUDIT_GPU_MODEL",
}


def why_not() -> str | None:
    """What keeps these tests from running here."""
    try:
        machine = detect()
    except NotFinished as error:
        return error.message
    if machine.kind != "cuda":
        return f"needs a CUDA device; this is a {machine.kind}: {machine.name}"
    missing = [name for name in OPTIONS.values() if not os.environ.get(name)]
    return f"not set: {', '.join(missing)}" if missing else None


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def options() -> list[str]:
    """What to run with, as options of a command line."""
    return [word for option, name in OPTIONS.items() for word in (option, os.environ[name])]


def ablated(name: str, folder: Path) -> dict[str, Any]:
    """The report of one of the recipes beside this file, on the release that is here."""
    release = os.environ[OPTIONS["--python"]].partition("=")[0]
    recipe = folder / name
    recipe.write_text(Path(__file__).with_name(name).read_text().replace(RELEASE, release))
    code = run(["ablate", str(recipe), "--run-dir", str(folder / "run"), *options()])
    report: dict[str, Any] = json.loads((folder / "run" / "report.json").read_text())
    assert code == report["exit_code"]
    return report


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return ablated("gpu-arms.yaml", tmp_path_factory.mktemp("arms"))


@pytest.fixture(scope="module")
def updates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return ablated("gpu-weight-update.yaml", tmp_path_factory.mktemp("updates"))


def test_every_arm_runs_on_the_gpu_or_says_why_it_is_unsupported(arms: dict[str, Any]) -> None:
    for arm in arms["arms"]:
        assert arm["status"] == "ok" or (arm["status"] == "unsupported" and arm["error"]), arm["error"]
        assert arm["status"] != "ok" or arm["resolved"]["device"].startswith("cuda")


def test_the_workers_tell_everything_they_are_asked_on_a_gpu(arms: dict[str, Any]) -> None:
    for arm in (arm for arm in arms["arms"] if arm["status"] == "ok"):
        assert arm["loaded"]["failed"] == {}
        named = ("model_runner", "attention_backend", "attention_version", "cudagraph_mode", "gpu", "driver")
        assert all(arm["loaded"]["features"][name] for name in named), arm["loaded"]
        assert arm["loaded"]["ran"]["batches"] > 0


def test_raw_logprobs_are_named_and_processed_ones_remove_them(arms: dict[str, Any]) -> None:
    assert "raw logprobs" in arms["layers"][0]["cause"]
    effects = {effect["factor"]: effect["verdict"] for effect in arms["effects"]}
    assert effects["logprobs-mode"] == "removes the mismatch"
    assert effects["dummy"] in {"within the noise of repeats", "too small to matter"}


def test_new_requests_are_not_stale_once_the_cache_is_cleared(updates: dict[str, Any]) -> None:
    cases = {case["clear_cache"]: case for case in updates["weight_updates"]["cases"]}
    assert cases[True]["staleness"]["verdict"] != "mismatch"
    assert cases[True]["in_flight"]["lost"] == 0
    assert cases[False]["staleness"]["verdict"] != "match"


def test_what_is_planted_in_the_engine_of_this_gpu_is_named(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "evidence.selftest", "--engines", "--run-dir", str(tmp_path), *options()]
    found = subprocess.run(words, cwd=Path(__file__).parents[2] / ".ci", check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
