"""A run whose sections are a file each is inspected once, in the file with its engine."""

from pathlib import Path

import pytest

from rlaudit.cli.app import run as rlaudit

INFER = "[server]\nport = 8001\n[vllm]\nmodel = 'org/policy'\nlogprobs_mode = 'raw_logprobs'\n"
ORCH = "batch_size = 8\n[train.sampling]\ntemperature = 0.7\n[[train.source]]\nname = 'a'\n"


@pytest.mark.parametrize("names", [["infer.toml"], ["orch.toml"], ["infer.toml", "orch.toml"], ["."]])
def test_a_split_run_is_one_config_whichever_of_its_files_is_named(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "infer.toml").write_text(INFER)
    (tmp_path / "orch.toml").write_text(ORCH)
    monkeypatch.chdir(tmp_path)
    rlaudit(["inspect", *names, "--from", "0.18.1", "--to", "0.32.0", "--output", "concise"])
    shown = capsys.readouterr().out
    assert shown.count("error raw-logprobs") == 1, shown
    assert "orch.toml:" not in shown
