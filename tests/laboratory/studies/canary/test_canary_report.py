"""The report of a canary: valid, drawn in every format, and never finished where a training is missing."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from trainings import Canaries

from rlaudit.diagnosis.canary import ENTROPY, JUDGED, KL
from rlaudit.laboratory.recipe import names_recipe
from rlaudit.layers import Layer, Verdict
from rlaudit.report.of_trainings import document_of
from rlaudit.report.rendering.formats import html, markdown, text
from rlaudit.report.rendering.formats import json as as_json
from rlaudit.report.rendering.picture import pictures_of
from rlaudit.report.report import Report
from rlaudit.report.schema import report_schema

ARMS = [{"name": "V0", "version": "0.8.5"}, {"name": "V1 as it is"}, {"name": "V1 processed"}]
CLAIMS = [{"says": "It bends", "arm": "V1 as it is", "metric": "rl/reward", "expects": "separated"}]


@pytest.fixture
def canaries(tmp_path: Path) -> Canaries:
    return Canaries(tmp_path)


def report(canaries: Canaries, *, fail: bool = True) -> Report:
    plan = canaries.recipe(ARMS, claims=CLAIMS)
    return document_of(canaries.finished(plan, {"V1 as it is": "raw"}), fails=fail)


def test_a_training_judges_no_layer_and_names_the_commands_that_do(canaries: Canaries) -> None:
    layers = report(canaries)["layers"]
    assert [layer.layer for layer in layers] == list(Layer)
    assert {layer.verdict for layer in layers} == {Verdict.NOT_TESTED}
    assert all(layer.cause is None and "not why" in layer.because for layer in layers)
    named = [re.findall(r"rlaudit ablate ([\w-]+)", layer.next) for layer in layers]
    assert all(named) and all(names_recipe(name) for names in named for name in names)


def test_a_claim_that_is_not_decided_or_a_training_that_did_not_end_leaves_the_audit_unfinished(
    canaries: Canaries,
) -> None:
    found = report(canaries)
    assert (found["canary"].claims[0].verdict, found["exit_code"]) == (Verdict.INCONCLUSIVE, 3)
    assert found["versions"] == {"from": "0.8.5", "to": "0.18.1"}
    canaries.failed["V1 processed"] = "out of memory"
    found = report(canaries)
    assert found["exit_code"] == 3
    assert any("V1 processed, seed 0: out of memory" in said for said in found["not_seen"])


def test_an_arm_is_reported_as_curves_reports_a_candidate(canaries: Canaries) -> None:
    reference, raw, _ = report(canaries)["canary"].arms
    assert reference.curves is None and raw.curves is not None
    outcomes = {metric.name: metric.outcome for metric in raw.curves.metrics}
    assert set(outcomes) == set(JUDGED)
    assert (outcomes[KL], outcomes[ENTROPY]) == ("separated", "not separated")


def test_every_format_shows_every_arm_and_claim(canaries: Canaries) -> None:
    found = report(canaries)
    drawn, missing = pictures_of(found)
    assert (len(drawn), missing) == (6, [])
    assert all([line.name for line in one.sparklines] == [arm["name"] for arm in ARMS] for one in drawn)
    assert html.render(found, None).count("<svg") == 6
    assert "## Claims" in markdown.render(found, None)
    # The table of `rlaudit curves`, for each arm that has one.
    assert html.render(found, None).count("separated at step") >= 2
    Draft202012Validator(report_schema()).validate(json.loads(as_json.render(found, None)))
    for width in (80, 120, None):
        shown = " ".join(text.render(found, width).split())
        assert all(said in shown for said in ("V1 processed", "It bends", "clip rate", "logprobs only", "not decided"))
