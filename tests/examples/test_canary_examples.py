"""The planted faults under examples/canary: their report says of the logs beside it what `rlaudit curves` does."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rlaudit.curves.comparison import Outcome, compare
from rlaudit.diagnosis.canary import CLIP_RATE, JUDGED, KL
from rlaudit.laboratory.studies.canary.run import read_curves

PLANTED = Path(__file__).parents[2] / "examples" / "canary" / "planted"
CANARY = json.loads((PLANTED / "report.json").read_text(encoding="utf-8"))["canary"]
REFERENCE, *ARMS = CANARY["arms"]


def log_of(arm: dict[str, Any]) -> Path:
    return PLANTED / "logs" / (re.sub(r"\W+", "-", arm["name"].lower()) + ".jsonl")


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm["name"])
def test_the_kept_curves_part_where_the_report_says(arm: dict[str, Any]) -> None:
    runs = [[read_curves(log_of(one))] for one in (REFERENCE, arm)]
    judged = compare(*runs, JUDGED, CANARY["alpha"], 0).results
    reported = {metric["name"]: (metric["outcome"], metric["detected_step"]) for metric in arm["curves"]["metrics"]}
    assert {result.name: (result.outcome, result.detected_step) for result in judged} == reported


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm["name"])
def test_every_fault_parts_and_the_honest_arm_does_not(arm: dict[str, Any]) -> None:
    parted = {metric["name"] for metric in arm["curves"]["metrics"] if metric["outcome"] == Outcome.SEPARATED}
    assert parted == (set() if arm["name"] == "honest" else {CLIP_RATE, KL})
