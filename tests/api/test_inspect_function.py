"""`rlaudit.inspect`: what the command says, in silence."""

import json
from pathlib import Path
from typing import Any

import pytest

import rlaudit
from rlaudit.cli.app import run
from rlaudit.errors import UsageError
from rlaudit.text.plain import plain

CONFIG = Path(__file__).parents[2] / "examples" / "verl" / "v1-to-v1" / "run_grpo.sh"


def document(report: rlaudit.Report) -> Any:
    return json.loads(json.dumps(plain(report)))


def test_the_report_is_that_of_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["inspect", str(CONFIG), "--from", "0.11.2", "--to", "0.22.0", "--platform", "a100"]
    code = run([*words, "--output", f"json:{tmp_path}/report.json"])
    capfd.readouterr()
    report = rlaudit.inspect(CONFIG, before="0.11.2", after="0.22.0", platform="a100")
    assert capfd.readouterr() == ("", "")
    assert report["exit_code"] == code
    assert {finding.rule for finding in report["findings"]} >= {"model-runner-v2", "filters-not-replayed"}
    assert document(report) == json.loads((tmp_path / "report.json").read_text())


def test_rules_are_selected_as_with_the_command() -> None:
    report = rlaudit.inspect(str(CONFIG), before="0.11.2", after="0.22.0", select=["model-runner-v2"])
    assert [finding.rule for finding in report["findings"]] == ["model-runner-v2"]


def test_the_settings_of_the_project_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rlaudit.toml").write_text('from = "0.11.2"\nto = "0.22.0"\n')
    (tmp_path / "run_grpo.sh").write_text(CONFIG.read_text())
    monkeypatch.chdir(tmp_path)
    assert rlaudit.inspect("run_grpo.sh")["versions"] == {"from": "0.11.2", "to": "0.22.0"}


def test_what_does_not_exist_is_rlaudits_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no config was named"):
        rlaudit.inspect()
    with pytest.raises(UsageError, match="newest"):
        rlaudit.inspect(CONFIG, after="newest")
    with pytest.raises(UsageError, match="no such folder"):
        rlaudit.inspect(CONFIG, framework_source=["nowhere"])


def test_without_a_config_the_audit_is_not_finished(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n")
    assert rlaudit.inspect(tmp_path / "notes.txt", before="0.8.5", after="0.18.1")["exit_code"] == 3
