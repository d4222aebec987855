"""A terminal that does not know its size (under `script`, `docker run -t`, `ssh -tt`) reports 0 columns."""

import os
import pty
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

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
    ours, theirs = pty.openpty()
    reader = Reader(ours)
    reader.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        for name in ("stdout", "__stdout__"):
            monkeypatch.setattr(sys, name, terminal)
        code = run(words)
    reader.join()
    assert code in {0, 1, 3}
    lines = re.sub(r"\x1b\[[\d;]*m", "", reader.text.decode()).splitlines()
    # A line to paste is not wrapped.
    assert 70 < max(len(line) for line in lines if "rlaudit " not in line) <= 80


class Reader(threading.Thread):
    """Reads what is written to the other end of a terminal: little of it waits there."""

    def __init__(self, end: int) -> None:
        super().__init__()
        self.end, self.text = end, b""

    def run(self) -> None:
        # Linux answers with an error once the other end is closed.
        with suppress(OSError):
            while part := os.read(self.end, 65536):
                self.text += part
        os.close(self.end)
