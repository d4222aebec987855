"""The main job on the real CPU engines of 0.8.5 and 0.18.1, small: minutes, and gigabytes of environments."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlaudit.cli.app import run

pytestmark = pytest.mark.engine

RECIPE = Path(__file__).with_name("semantic-pair.yaml")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("runs") / "semantic-pair"
    code = run(["ablate", str(RECIPE), "--cpu", "--run-dir", str(folder), "--output", f"text:{folder}/report.txt"])
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert code == report["exit_code"] == 1
    return report


def arm(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(arm for arm in document["arms"] if arm["name"] == name)


@pytest.mark.parametrize("name", ["reference", "candidate + logprobs-mode=processed"])
def test_v0_and_processed_v1_agree_with_the_trainer_to_float32(document: dict[str, Any], name: str) -> None:
    found = arm(document, name)["measurements"]
    assert found["k3"]["value"] < 1e-6
    assert found["mean_ratio_minus_one"]["low"] <= 0.0 <= found["mean_ratio_minus_one"]["high"]


def test_v1_as_it_is_has_raw_logprobs(document: dict[str, Any]) -> None:
    found = arm(document, "candidate")["measurements"]["mean_ratio_minus_one"]
    assert found["value"] > 0.05
    assert found["low"] > 0.02
    semantic = document["layers"][0]
    assert semantic["verdict"] == "mismatch"
    assert "raw logprobs" in semantic["cause"]
    assert "T=0.7" in semantic["cause"]


def test_processed_logprobs_are_named_as_what_removes_it(document: dict[str, Any]) -> None:
    (effect,) = document["effects"]
    assert (effect["factor"], effect["verdict"]) == ("logprobs-mode", "removes the mismatch")
    assert 'logprobs_mode="processed_logprobs"' in document["blocks"][0]["python"]


def test_each_arm_ran_the_engine_it_says(document: dict[str, Any]) -> None:
    assert arm(document, "reference")["resolved"]["engine"] == "V0"
    assert arm(document, "candidate")["resolved"]["engine"] == "V1"
    assert arm(document, "candidate")["cached_tokens"] > 0
