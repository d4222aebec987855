"""`rlaudit report`: runs that have finished, have not, are older, newer, broken, or hostile."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rlaudit.cli.app import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "vllm" / "v0-to-v1" / "report.json"


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A run directory of a release that drew nothing: its report and its tokens."""
    (tmp_path / "report.json").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    rng = np.random.default_rng(0)
    rollout_T = -rng.exponential(1.0, 400)
    columns = {"position": np.arange(400) % 40, "rollout_logprob": rollout_T, "trainer_logprob": rollout_T - 0.01}
    arms = {"block": "migration", "arm": ["candidate"] * 200 + ["reference"] * 200}
    pd.DataFrame({**arms, **columns}).to_parquet(tmp_path / "tokens.parquet")
    return tmp_path


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A run that was stopped in its second cell."""
    plan = {
        "recipe": {
            "description": "Does it match?",
            "blocks": [{"name": "b", "reference": {"version": "0.8.5"}, "candidate": {"version": "0.18.1"}}],
        },
        "arms": [{"block": "b", "name": name, "role": name, "version": "0.18.1"} for name in ("candidate", "parity")],
        "provenance": {},
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    for name, result in (("0a", {"status": "ok", "error": None}), ("0b", None)):
        cell = tmp_path / "cells" / name
        cell.mkdir(parents=True)
        (cell / "job.json").write_text(json.dumps({"script": "/x/generate.py"}))
        (cell / "usage.json").write_text(json.dumps({"seconds": 3.0, "peak_memory_mib": 100.0}))
        if result is not None:
            (cell / "result.json").write_text(json.dumps(result))
    return tmp_path


def test_an_unfinished_run_says_what_is_missing_and_ends_with_3(
    unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(unfinished)]) == 3
    said = capsys.readouterr()
    assert "has not finished" in said.err and "go on from the finished cells: " in said.err
    assert "vLLM 0.8.5 -> 0.18.1  Does it match?" in said.out
    assert said.out.count("NOT TESTED") == 3
    assert "nothing is concluded yet from the arms " in said.out and "parity (vLLM 0.18.1)" in said.out
    assert "step 0b (generate): runs, or was ended; it is run again" in said.out
    assert "cell 0a" not in said.out


@pytest.mark.parametrize("form", ["html", "markdown", "json"])
def test_an_unfinished_run_can_be_rendered_in_any_format(
    unfinished: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(unfinished), "--output", form]) == 3
    assert "nothing is concluded yet" in capsys.readouterr().out


def test_a_broken_plan_is_missing_and_no_bug(unfinished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (unfinished / "plan.json").write_text('{"recipe": ["torn"')
    assert run(["report", str(unfinished)]) == 3
    assert "plan.json is missing or broken" in capsys.readouterr().out


def test_a_newer_schema_is_refused_with_what_to_do(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _edit(finished, schema="rlaudit-report/2", rlaudit="3.1")
    assert run(["report", str(finished)]) == 2
    said = capsys.readouterr().err
    assert "rlaudit-report/2, written by rlaudit 3.1" in said
    assert "upgrade rlaudit" in said


def test_fields_that_a_newer_release_added_are_no_fault(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _edit(finished, rlaudit="0.9", news={"more": 1})
    assert run(["report", str(finished)]) == 1
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not a report"),
        ("[1, 2]", "is not a report of rlaudit"),
        ('{"schema": "other/1"}', "is not a report of rlaudit"),
        ('{"schema": "rlaudit-report/1", "command": "ablate"}', "does not follow schema"),
        ('{"schema": "rlaudit-report/1", "exit_code": NaN}', "no number of JSON"),
        ('{"schema": "rlaudit-report/1", "exit_code": 1e999}', "no number of JSON"),
        ("[" * 100_000, "is not a report"),
    ],
)
def test_what_is_no_report_is_said_in_a_sentence(
    tmp_path: Path, content: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text(content)
    assert run(["report", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_field_is_named(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _edit(finished, layers=[{"layer": "semantic", "verdict": "splendid"}])
    assert run(["report", str(finished)]) == 2
    assert "$.layers[0]" in capsys.readouterr().err


def test_a_place_without_a_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(tmp_path / "nowhere")]) == 2
    assert "no such run" in capsys.readouterr().err


def test_names_of_a_hostile_run_reach_neither_the_terminal_nor_the_page(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _edit(finished, description="\x1b[2J<script>alert(1)</script>\u202e\ud800")
    for form in ("text", "markdown", "html"):
        run(["report", str(finished), "--output", form])
        out = capsys.readouterr().out
        assert "\x1b[2J" not in out and "\u202e" not in out
        assert form == "text" or "<script>" not in out


def _edit(folder: Path, **changed: Any) -> None:
    path = folder / "report.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changed}), encoding="utf-8")
