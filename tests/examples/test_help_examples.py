import pytest
from documented_commands import run_line

from rlaudit.cli.app import run
from rlaudit.cli.commands import COMMANDS
from rlaudit.cli.examples import EXAMPLES

# Files that have something to find, and logs that prove no match; everything else ends with 0.
EXIT_CODES = {"inspect": 1, "report": 1, "diagnose": 1, "compare": 0}
LINES = [line for command in COMMANDS for line in EXAMPLES[command]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_its_examples_in_its_help(command, capsys):
    assert run([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert EXAMPLES[command]
    assert all(f"  {line}\n" in shown for line in EXAMPLES[command])


@pytest.mark.parametrize("line", LINES)
def test_an_example_of_the_help_runs(line, tmp_path, monkeypatch, capsys):
    assert run_line(line, tmp_path, monkeypatch, LINES) == EXIT_CODES.get(line.split()[1], 0)
    assert "Traceback" not in capsys.readouterr().err
