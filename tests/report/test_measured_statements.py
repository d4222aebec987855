"""Curves and comparisons in the formats that know nothing but findings."""

import json
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import documents
import pytest

from rlaudit.report.rendering.formats import concise, github, junit, sarif
from rlaudit.report.rendering.statements import statements
from rlaudit.report.report import Report


def document(maker: Callable[[], dict[str, Any]], exit_code: int, key: str, part: Any) -> Report:
    return documents.records({**maker(), "layers": [], "exit_code": exit_code, key: part})


def metric(name: str, outcome: str) -> dict[str, Any]:
    levels = {"detected_step": 21, "onset_step": 16, "reference_level": 0.0713, "candidate_level": 0.0462}
    made: dict[str, Any] = documents.curves()["curves"]["metrics"][0]
    return made | {"name": name, "outcome": outcome, "because": "not in the candidate", **levels}


def curves(metrics: list[dict[str, Any]], order: dict[str, str], exit_code: int = 1) -> Report:
    part = {**documents.curves()["curves"], "metrics": metrics, "order": order}
    return document(documents.curves, exit_code, "curves", part)


def compared(exit_code: int) -> Report:
    fault = {"path": "dump.jsonl", "line": 3, "sequence": None, "message": "not JSON", "count": 1, "kind": "not JSON",
             "column": None, "sequences_left_out": 1}  # fmt: skip
    faults = {"count": 5, "sequences_left_out": 5, "shown": [fault, {**fault, "sequence": "prompt 1"}]}
    one = documents.comparison()["comparisons"][0] | {"name": "dump", "faults": faults}
    return document(documents.comparison, exit_code, "comparisons", [one])


ORDER = {
    "precedence": "logprobs first",
    "because": "k3 at 2; reward at 21",
    "suggests": "the backend first",
    "next": "",
}
CURVES = curves(
    [metric("rl/reward", "separated"), metric("rl/kl", "not separated"), metric("rl/entropy", "unknown")], ORDER
)
COMPARE = compared(exit_code=3)


def test_each_curve_that_left_its_band_is_a_line_and_an_unknown_one_is_no_match() -> None:
    printed = concise.render(CURVES, None).splitlines()
    assert printed == [
        "error curve-separated rl/reward left the band of its reference at step 21 (onset about step 16): 0.0462 "
        "instead of 0.0713",
        "warning curve-unknown rl/entropy: not in the candidate",
        "note order-of-separation logprobs first: k3 at 2; reward at 21. This suggests: the backend first",
    ]


def test_lines_of_a_dump_that_cannot_be_used_are_annotations_at_their_place() -> None:
    printed = github.render(COMPARE, None).splitlines()
    assert printed[0] == "::error file=dump.jsonl,line=3,title=rlaudit%3A unusable-data::not JSON"
    assert "prompt 1: not JSON" in printed[1]
    assert "3 more faults are not shown" in printed[2]
    allowed = github.render(compared(exit_code=0), None)
    assert "::error" not in allowed
    assert "::warning" in allowed


@pytest.mark.parametrize("measured", [CURVES, COMPARE], ids=lambda one: one["command"])
def test_failures_in_junit_and_results_in_sarif_are_the_same_findings(measured: Report) -> None:
    root = ElementTree.fromstring(junit.render(measured, None))
    assert root.findall(".//failure")
    results = json.loads(sarif.render(measured, None))["runs"][0]["results"]
    assert [one["message"]["text"] for one in results] == [one.message for one in statements(measured)]


def test_a_measurement_in_which_nothing_was_wrong_is_one_case_that_passes() -> None:
    order = {"precedence": "nothing separated", "because": "", "suggests": "", "next": ""}
    clean = curves([metric("rl/kl", "not separated")], order, exit_code=0)
    assert statements(clean) == []
    root = ElementTree.fromstring(junit.render(clean, None))
    assert root.attrib["tests"] == "1"
    assert root.attrib["failures"] == "0"
