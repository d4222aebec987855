"""The same two jobs on a GPU: arms in bfloat16 and a weight update. `pytest -m gpu`, minutes.

RLAUDIT_GPU_PYTHON may name an interpreter that already holds a vLLM, which is then tried in place of 0.18.1;
RLAUDIT_GPU_TRAINER one with torch and transformers.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rlaudit.cli.app import run
from rlaudit.engines.accelerator import detect
from rlaudit.engines.environment import spec_of_interpreter

RELEASE = "0.18.1"
ENGINE, TRAINER = (os.environ.get(name) for name in ("RLAUDIT_GPU_PYTHON", "RLAUDIT_GPU_TRAINER"))
MACHINE = detect()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(MACHINE.kind != "cuda", reason=f"needs a CUDA device; this is a {MACHINE.kind}: {MACHINE.name}"),
]


def ablated(name: str, folder: Path) -> dict[str, Any]:
    """The report of one of the recipes beside this file, on the release that is here."""
    text = Path(__file__).with_name(name).read_text()
    arguments: list[str] = []
    if ENGINE is not None:
        text = text.replace(RELEASE, spec_of_interpreter("vllm", Path(ENGINE)).version)
        arguments += ["--python", ENGINE]
    if TRAINER is not None:
        arguments += ["--trainer-python", TRAINER]
    recipe = folder / name
    recipe.write_text(text)
    code = run(["ablate", str(recipe), "--run-dir", str(folder / "run"), *arguments])
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


def test_raw_logprobs_are_named_and_processed_ones_remove_them(arms: dict[str, Any]) -> None:
    assert "raw logprobs" in arms["layers"][0]["cause"]
    effects = {effect["factor"]: effect["verdict"] for effect in arms["effects"]}
    assert effects["logprobs-mode"] == "removes the mismatch"
    assert effects["dummy"] in {"inside the noise floor", "below 1 % of the equivalence margin"}


def test_new_requests_are_not_stale_once_the_cache_is_cleared(updates: dict[str, Any]) -> None:
    cases = {case["clear_cache"]: case for case in updates["weight_updates"]["cases"]}
    assert cases[True]["staleness"]["verdict"] != "mismatch"
    assert cases[True]["in_flight"]["lost"] == 0
    assert cases[False]["staleness"]["verdict"] != "match"
