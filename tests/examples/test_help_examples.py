import os
import sys
from pathlib import Path

import pytest
from documented_commands import lay_out, rlaudit_words

from rlaudit.cli.app import run
from rlaudit.cli.commands import COMMANDS
from rlaudit.cli.examples import EXAMPLES

# Files that have something to find, and logs that acquit nobody; everything else ends with 0.
EXIT_CODES = {"inspect": 1, "report": 1, "diagnose": 1, "compare": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("desk")
    lay_out(made)
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_its_examples_in_its_help(command, capsys):
    assert run([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert EXAMPLES[command]
    assert all(f"  {line}\n" in shown for line in EXAMPLES[command])


@pytest.mark.parametrize("line", [line for command in COMMANDS for line in EXAMPLES[command]])
def test_an_example_of_the_help_runs(line, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    # `python` is this one.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if "compare.json" in line and "diagnose" in line:
        run(rlaudit_words("rlaudit compare rollouts.jsonl --temperature 0.7 --output json:compare.json"))
    capsys.readouterr()
    assert run(rlaudit_words(line)) == EXIT_CODES.get(line.split()[1], 0)
    assert "Traceback" not in capsys.readouterr().err
