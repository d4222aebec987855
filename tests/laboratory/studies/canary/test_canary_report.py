"""The report of a canary: valid, drawn in every format, and never finished where a training is missing."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from trainings import Canaries

from rlaudit.laboratory.studies.canary.document import document_of
from rlaudit.report.formats import html, markdown, text
from rlaudit.report.formats import json as as_json
from rlaudit.report.picture import pictures_of
from rlaudit.report.report import Report
from rlaudit.report.schema import report_schema

ARMS = [{"name": "V0", "version": "0.8.5"}, {"name": "V1 as it is"}, {"name": "V1 processed"}]
CLAIMS = [{"says": "It bends", "arm": "V1 as it is", "metric": "rl/reward", "expects": "separated"}]


@pytest.fixture
def canaries(tmp_path: Path) -> Canaries:
    return Canaries(tmp_path)


def report(canaries: Canaries, *, fail: bool = True) -> Report:
    plan = canaries.recipe(ARMS, claims=CLAIMS)
    return document_of(canaries.finished(plan, {"V1 as it is": "raw"}), fail_on_mismatch=fail)


def test_the_layers_are_those_of_the_migration_as_it_is(canaries: Canaries) -> None:
    found = report(canaries)
    assert found["layers"][0]["cause"] == "raw-logprobs"
    assert (found["exit_code"], report(canaries, fail=False)["exit_code"]) == (1, 0)
    assert found["versions"] == {"from": "0.8.5", "to": "0.18.1"}


def test_a_training_that_did_not_end_leaves_the_audit_unfinished(canaries: Canaries) -> None:
    canaries.failed["V1 processed"] = "out of memory"
    found = report(canaries)
    assert found["exit_code"] == 3
    assert any("V1 processed, seed 0: out of memory" in said for said in found["not_seen"])


def test_there_are_six_figures_with_every_arm_in_them(canaries: Canaries) -> None:
    drawn, missing = pictures_of(report(canaries))
    assert len(drawn) == 6
    assert not missing
    assert all([line.name for line in one.sparklines] == [arm["name"] for arm in ARMS] for one in drawn)


@pytest.mark.parametrize("width", [80, 120, None])
def test_a_terminal_and_a_pipe_show_every_arm_and_claim(canaries: Canaries, width: int | None) -> None:
    shown = text.render(report(canaries), width)
    for said in ("V1 processed", "It bends", "clip rate", "raw-logprobs"):
        assert said in " ".join(shown.split())


def test_every_format_draws_it(canaries: Canaries) -> None:
    found = report(canaries)
    assert "<svg" in html.render(found, None)
    assert "## Claims" in markdown.render(found, None)
    Draft202012Validator(report_schema()).validate(json.loads(as_json.render(found, None)))
