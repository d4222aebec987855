"""`-` as a path is standard input or standard output, and no file is ever called so."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml
from table_files import rows

from rlaudit.cli.app import run

REPORT = Path(__file__).parents[2] / "examples" / "vllm" / "v0-to-v1" / "report.json"
CONFIG = "vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\nfinetune:\n  rl: {}\nworld: {}\n"
Given = Callable[[bytes], None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """Puts bytes on standard input."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_compare_reads_a_table_of_either_kind(
    given: Given, capsys: pytest.CaptureFixture[str], kind: str, tmp_path: Path
) -> None:
    written = tmp_path / f"table.{kind}"
    rows().to_parquet(written) if kind == "parquet" else rows().to_json(written, orient="records", lines=True)
    given(written.read_bytes())
    code = run(["compare", "-", "--temperature", "1", "--output", "json:-"])
    (compared,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert code in {0, 1, 3} and compared["tokens"] == len(rows())


def test_a_config_for_compare_comes_from_standard_input(given: Given, capsys: pytest.CaptureFixture[str]) -> None:
    rows().to_json("table.jsonl", orient="records", lines=True)
    given(f"{CONFIG}llm:\n  parameters:\n    temperature: 0.7\n".encode())
    assert run(["compare", "table.jsonl", "--config", "-"]) in {0, 1, 3}
    assert "sampled at T=0.7" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "diagnose"])
def test_a_report_is_read(given: Given, capsys: pytest.CaptureFixture[str], command: str) -> None:
    given(REPORT.read_bytes())
    assert run([command, "-"]) == 1
    assert "1. semantic  MISMATCH" in capsys.readouterr().out


def test_curves_reads_lines_and_json(given: Given, capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame({"step": range(60), "reward": [0.5] * 60})
    table.to_csv("before.csv", index=False)
    for data in (table.to_csv(index=False), table.to_json(orient="records", lines=True)):
        given(data.encode())
        run(["curves", "before.csv", "-", "--output", "json"])
        assert json.loads(capsys.readouterr().out)["curves"]["candidate"]["last_step"] == 59


def test_ablate_reads_a_config_and_writes_its_recipe(given: Given, capsys: pytest.CaptureFixture[str]) -> None:
    given(CONFIG.encode())
    assert run(["ablate", "-", "--from", "0.8.5", "--to", "0.18.1", "--write-recipe", "-"]) == 0
    assert "blocks" in yaml.safe_load(capsys.readouterr().out)


def test_an_output_to_a_dash_goes_to_standard_output(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "base.yaml").write_text(CONFIG)
    run(["inspect", "base.yaml", "--output", "concise:-"])
    assert capsys.readouterr().out.startswith("base.yaml:")
    assert run(["inspect", "base.yaml", "--output", "concise:-", "--output", "json"]) == 2
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["compare", "-", "-"], "there is one of it"),
        (["ablate", "quick", "--run-dir", "-"], "--run-dir is a folder"),
        (["inspect", "-", "--bump", "a..b"], "standard input is in none"),
    ],
)
def test_where_a_dash_can_be_neither_that_is_said(
    given: Given, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    given(b"")
    assert run(words) == 2
    assert says in capsys.readouterr().err
