"""A terminal that does not know its size (under `script`, `docker run -t`, `ssh -tt`) reports 0 columns."""

import os
import re
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from rlaudit.cli.app import run

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLE = str(EXAMPLES.parent / "rlaudit" / "demo" / "vllm-0.18.1-processed.parquet")
CURVES = EXAMPLES / "case-studies" / "pipelinerl-137-v0-to-v1"
REPORT = str(EXAMPLES / "vllm" / "v0-to-v1" / "report.json")
COMMANDS = [
    ["report", REPORT],
    ["compare", TABLE, "--temperature", "0.7"],
    ["diagnose", REPORT],
    ["curves", str(CURVES / "v0-seed1.log"), str(CURVES / "v1.log")],
    ["inspect", str(CURVES / "base.yaml"), "--from", "0.8.5", "--to", "0.18.1"],
    ["explain", "0.17.1..0.18.1"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: str(words[0]))
def test_a_terminal_of_0_columns_counts_as_80(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal(columns=0)
    with os.fdopen(terminal.end, "w", encoding="utf-8", closefd=False) as stream:
        for name in ("stdout", "__stdout__"):
            monkeypatch.setattr(sys, name, stream)
        code = run(words)
    assert code in {0, 1, 3}
    lines = re.sub(r"\x1b\[[\d;]*m", "", terminal.text()).splitlines()
    # A line to paste is not wrapped.
    assert 70 < max(len(line) for line in lines if "rlaudit " not in line) <= 80
