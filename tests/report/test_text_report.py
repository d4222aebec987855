"""The text report, rendered from the example of a real run."""

import re
from dataclasses import replace

import pytest
from documents import EXAMPLE

from rlaudit.report.figures import HEADLINE, interval
from rlaudit.report.read_report import read_report
from rlaudit.report.rendering.formats import text
from rlaudit.report.rendering.measured_on import measured_on
from rlaudit.report.report import Report

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def document() -> Report:
    return read_report(EXAMPLE)


def test_the_first_lines_are_the_versions_and_what_was_measured_and_the_first_verdict(document: Report) -> None:
    lines = text.render(document, None).splitlines()
    assert "0.8.5 -> 0.18.1" in lines[0]
    assert all(
        part in lines[1]
        for part in ("smollm2-135m-instruct", "engine float32, trainer float32", "CPU (Intel(R) Xeon(R)", "T 0.7")
    )
    assert lines[3].startswith("The move breaks what the logprobs mean (raw-logprobs)")
    assert next(line for line in lines if line.startswith("1. ")).startswith("1. semantic  MISMATCH: raw logprobs")


def test_a_model_says_what_it_stands_for_and_a_run_how_it_was_started(document: Report) -> None:
    run = document["run"]
    model = {**run.provenance["model"], "stands_for": "Qwen/Qwen3-8B"}
    provenance = {**run.provenance, "model": model, "command": "rlaudit ablate run.sh"}
    (line,) = measured_on({**document, "run": replace(run, provenance=provenance)})
    assert line.startswith("smollm2-135m-instruct in place of Qwen/Qwen3-8B · ")
    assert line.endswith(" · rlaudit ablate run.sh")


def test_layers_come_in_their_order_and_before_any_table(document: Report) -> None:
    report = text.render(document, None)
    places = [
        report.index(part)
        for part in ("1. semantic", "2. inference path", "3. objective", "rollout against trainer, arm by arm")
    ]
    assert places == sorted(places)


def test_piped_text_has_no_colour_and_one_line_per_arm(document: Report) -> None:
    report = text.render(document, None)
    assert "\x1b" not in report
    for arm in document["arms"]:
        if arm.measurements:
            row = [interval(arm.measurements[name]) for name in HEADLINE[:2]]
            assert any(all(figure in line for figure in row) for line in report.splitlines())


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_figure_is_lost_at_any_width_and_no_line_is_wider(document: Report, width: int) -> None:
    report = ANSI.sub("", text.render(document, width))
    snippet = {f"   {line}" for block in document["blocks"] for line in (block.parity or "").splitlines()}
    assert max(len(line) for line in report.splitlines() if line not in snippet) <= width
    assert snippet <= set(report.splitlines())
    flowing = " ".join(report.split())
    for arm in document["arms"]:
        for name in HEADLINE[:2] if arm.measurements else ():
            assert interval(arm.measurements[name]) in flowing


def test_an_arm_that_the_engine_refused_is_named_with_the_engines_words(document: Report) -> None:
    report = text.render(document, None)
    assert "batch-invariance=on' is unsupported here: " in report
    assert "requires an attention backend" in report


def test_an_interval_that_is_not_reliable_carries_a_mark(document: Report) -> None:
    found = replace(document["arms"][0].measurements["k3"], value=0.5, low=0.25, high=1.0, reliable=False)
    assert interval(found) == "0.5 [0.25, 1] ?"
    assert interval(replace(found, reliable=True)) == "0.5 [0.25, 1]"


def test_a_figure_that_does_not_exist_is_a_dash_and_not_a_zero(document: Report) -> None:
    found = document["arms"][0].measurements["k3"]
    assert interval(replace(found, value=None, low=None, high=None)) == "-"
    assert interval(None) == "-"
