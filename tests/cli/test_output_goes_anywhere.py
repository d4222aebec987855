"""`rlaudit inspect` into a pipe that closes, a file, a terminal of any width, and one without colours."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import on_a_terminal

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "rlaudit", "inspect", "base.yaml", "--from", "0.8.5", "--to", "0.18.1"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
ENVIRONMENT.pop("NO_COLOR", None)


@pytest.fixture
def folder(tmp_path):
    shutil.copy(ROOT / "examples" / "pipelinerl" / "v0-config-on-v1" / "base.yaml", tmp_path)
    return tmp_path


def inspected(folder, columns, **environment):
    """What the command prints on a terminal of so many columns, and its exit code."""
    return on_a_terminal(
        *COMMAND[3:], columns=columns, variables=ENVIRONMENT | environment, cwd=folder, stderr=subprocess.DEVNULL
    )


def test_a_reader_that_leaves_is_no_error(folder):
    process = subprocess.Popen(
        COMMAND, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() in {0, 1}


def test_a_file_gets_plain_whole_lines_and_the_exit_code_stays(folder):
    with (folder / "report.txt").open("w") as file:
        code = subprocess.call(COMMAND, cwd=folder, stdout=file, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    assert code == 1
    report = (folder / "report.txt").read_text()
    assert "\x1b" not in report
    assert "returns raw logprobs, computed before temperature; vLLM 0.8.5 (V0) returned processed logprobs." in report
    assert "…" not in report


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_terminal_gets_colours_and_lines_that_fit(folder, columns):
    said, code = inspected(folder, columns, NO_COLOR="")
    assert code == 1
    assert "\x1b[" in said
    plain = "".join(part.partition("m")[2] if number else part for number, part in enumerate(said.split("\x1b[")))
    names = [line for line in plain.splitlines() if re.match(r" (error|warning|note) base.yaml:|   confirm: ", line)]
    # Where a finding is, its name, and a command to paste stay in one piece: they are clicked on and copied.
    assert [line for line in plain.splitlines() if len(line) > columns and line not in names] == []
    assert "raw-logprobs" in plain


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "TERM=dumb"])
def test_who_wants_no_colours_gets_none(folder, environment):
    said, code = inspected(folder, 80, **environment)
    assert code == 1
    assert "\x1b" not in said
    (sentence,) = (line for line in said.splitlines() if line.startswith("The move brings"))
    # Words are not cut in two: lines fit the terminal as they do in colour.
    assert len(sentence) <= 80
