"""What today's release does as well is told apart from what a move brings, in every format."""

import json
from pathlib import Path
from typing import Any

import pytest
from toy_dialect import PLAIN, Desk

from rlaudit.cli.app import run
from rlaudit.inspection.inspect import one_config
from rlaudit.rules.audit.finding import Finding
from rlaudit.severity import Severity
from rlaudit.vllm.machine import Machine

SERVER = """export VLLM_ATTENTION_BACKEND=FLASHINFER
export VLLM_USE_V1=0
vllm serve Qwen/Qwen3-8B --max-seq-len-to-capture 8192
"""
BOTH = PLAIN.replace("seed: 1", "enable_prefix_caching: true")


def of_rule(folder: Path, rule: str, before: str, text: str = SERVER) -> Finding:
    path = folder / "serve.sh"
    path.write_text(text)
    found = one_config(path, Machine(), before, "0.18.1").findings
    return next(one for one in found if one.rule == rule)


@pytest.mark.parametrize(("rule", "severity"), [
    ("attention-backend-variable-ignored", Severity.NOTE),
    ("engine-variable-ignored", Severity.NOTE),
    ("removed-flag", Severity.WARNING),
])  # fmt: skip
def test_what_is_so_before_the_move_is_no_error_of_it_and_gets_no_fix(tmp_path, rule, severity):
    finding = of_rule(tmp_path, rule, "0.16.0")
    assert finding.severity is severity
    assert finding.so_today is True
    assert finding.fix is None


@pytest.mark.parametrize("rule", ["attention-backend-variable-ignored", "engine-variable-ignored", "removed-flag"])
def test_what_the_move_takes_away_stays_an_error(tmp_path, rule):
    finding = of_rule(tmp_path, rule, "0.10.2")
    assert finding.severity is Severity.ERROR
    assert finding.so_today is False


def test_without_a_migration_it_is_told_of_the_one_release(tmp_path):
    finding = of_rule(tmp_path, "removed-flag", "0.18.1")
    assert finding.severity is Severity.ERROR
    assert finding.so_today is None


def test_a_key_that_was_passed_over_and_is_refused_now_stays_an_error(tmp_path):
    text = "vllm serve Qwen/Qwen3-8B --compilation-config '{\"use_inductor\": false}'\n"
    assert of_rule(tmp_path, "removed-nested-key", "0.12.0", text).severity is Severity.ERROR


def reported(desk: Desk, output: str, *words: str) -> str:
    desk.file("x.yaml", BOTH)
    desk.inspect("x.yaml", "--output", output, *words)
    return desk.out


@pytest.mark.parametrize("output", ["text", "markdown", "html"])
def test_what_the_move_brings_stands_before_what_is_so_today(desk: Desk, output: str) -> None:
    page, end = reported(desk, output), "<" if output == "html" else "\n"
    parts = (f"What the move brings{end}", "Raw logprobs", f"Today and after the move{end}", "Prefix caching is on.")
    places = [page.rindex(part) for part in parts]
    assert places == sorted(places)


def test_formats_without_headings_say_at_each_finding_what_is_so_today(desk: Desk) -> None:
    findings = {one["rule"]: one.get("so_today") for one in json.loads(reported(desk, "json"))["findings"]}
    assert findings == {"toy-raw": False, "toy-caching": True, "toy-warm": True}
    results = json.loads(reported(desk, "sarif"))["runs"][0]["results"]
    assert {one["ruleId"]: one["properties"]["soToday"] for one in results} == findings
    for output in ("concise", "github", "junit"):
        lines = [line for line in reported(desk, output).splitlines() if "Prefix caching" in line or "Raw log" in line]
        assert all(("so today, too." in line) == ("Prefix caching" in line) for line in lines), lines
    desk.inspect("x.yaml", "--output", "json", migrate=False)
    assert not [one for one in json.loads(desk.out)["findings"] if "so_today" in one]


def test_a_case_of_junit_fails_only_if_it_counts(desk: Desk) -> None:
    assert reported(desk, "junit", "--fail-on", "warning").count("<failure") == 2
    assert reported(desk, "junit", "--fail-on", "warning", "--fail-for", "move").count("<failure") == 1


def test_a_suppression_that_was_unused_before_the_move_is_no_finding_of_it(desk: Desk) -> None:
    text = "# rlaudit: ignore-file[toy-caching] never\n" + PLAIN
    desk.file("x.yaml", text)
    desk.inspect("x.yaml", "--output", "json")
    assert {one["rule"]: one["so_today"] for one in json.loads(desk.out)["findings"]}["suppression-unused"] is True


def test_the_first_screen_is_the_answer_and_a_layer_never_matches(desk: Desk) -> None:
    lines = reported(desk, "text").splitlines()
    assert lines[0] == "x.yaml: Toy, vLLM 0.8.5 (engine V0) -> 0.18.1 (engine V1)"
    assert lines[2:4] == [
        "The move brings 1 error (toy-raw).",
        "Today (0.8.5) and after the move: 1 warning (toy-caching) and 1 note.",
    ]
    rows = [" ".join(line.split()) for line in lines[4:8]]
    assert rows == [
        "1. semantic 2. inference path 3. objective",
        "today (0.8.5) 1 note 1 warning nothing found",
        "after (0.18.1) 1 error, 1 note 1 warning nothing found",
        "the move changed: 1 new no change found no change found",
    ]
    desk.inspect("x.yaml", "--select", "semantic")
    assert "not measured" in desk.out


def test_what_the_move_takes_away_is_a_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "serve.sh"
    path.write_text("vllm serve Qwen/Qwen3-8B --max-seq-len-to-capture 8192\n")
    words = ["inspect", str(path), "--from", "0.18.1", "--to", "0.10.2", "--select", "removed-flag"]
    run(words)
    text = capsys.readouterr().out
    assert "The move brings no new finding. Gone after the move: 1 error (removed-flag)." in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "the move not measured changed: 1 gone not measured" in rows
    run([*words, "--output", "json"])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [(one["rule"], one["number"]) for one in report["inspection"]["gone"]] == [("removed-flag", 1)]
    assert report["findings"] == []


@pytest.mark.parametrize("written", ["", "--logprobs-mode raw_logprobs "])
def test_an_argument_that_today_lacks_and_does_without_is_so_today(tmp_path: Path, written: str) -> None:
    text = f"export VLLM_USE_V1=1\nvllm serve Qwen/Qwen3-8B {written}--max-logprobs 5\n"
    assert of_rule(tmp_path, "raw-logprobs", "0.8.5", text).so_today is True


def test_what_to_set_is_said_of_a_file_that_cannot_be_written_so(desk: Desk) -> None:
    desk.file("x.yaml", "toy:\n  sampling:\n    temperature: 0.7\n")
    desk.inspect("x.yaml", "--output", "json", "--select", "toy-raw")
    (finding,) = json.loads(desk.out)["findings"]
    assert finding["fix"] is None
    assert finding["sets"] == {"logprobs_mode": "processed_logprobs"}


def test_what_is_to_be_taken_away_is_not_to_be_set(tmp_path: Path) -> None:
    finding = of_rule(tmp_path, "removed-flag", "0.10.2")
    assert finding.fix is not None
    assert finding.sets == ()
