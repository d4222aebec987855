"""What is raised on the way out is no verdict: Python's own exit code for it is 1, which reads as a mismatch."""

import subprocess
import sys
from pathlib import Path

import pytest

from rlaudit.cli import app

SHOWS_NOTHING = """
class Broken(Exception):
    exit_code = 2
    def show(self):
        raise TypeError("make_metavar() missing 1 required positional argument")
def raise_(error):
    raise error
"""


def ended(setup: str, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run `main` after some lines that break it."""
    imports = "import sys\nfrom rlaudit.cli import app, commands"
    script = f"{imports}\n{SHOWS_NOTHING}\n{setup}\nsys.argv[1:] = {list(words)}\napp.main()"
    return subprocess.run([sys.executable, "-c", script], check=False, text=True, stderr=subprocess.PIPE, **options)


def test_a_usage_error_that_cannot_be_shown_is_2_with_its_plain_message() -> None:
    done = ended('commands.run_command = lambda words: raise_(Broken("no such option: --what"))', "compare")
    assert done.returncode == 2
    assert done.stderr == "rlaudit: no such option: --what\n  see: rlaudit --help\n"


@pytest.mark.parametrize(
    "setup",
    [
        "commands.run_command = lambda words: 1 / 0; app.say = lambda text: 1 / 0",
        "commands.run_command = lambda words: 1 / 0; app.mask = lambda text: 1 / 0",
        "commands.run_command = lambda words: raise_(app.NotFinished('')); app.say = lambda _: raise_(MemoryError())",
        "app.learn = lambda environment: 1 / 0",
        "commands.run_command = lambda words: raise_(GeneratorExit())",
        "sys.modules['typer'] = None",
    ],
    ids=["say", "bug", "memory", "before", "no exception", "a broken package"],
)
def test_an_error_while_an_error_is_shown_is_70(setup: str) -> None:
    assert ended(setup, "compare", "x.parquet").returncode == 70


def test_ctrl_c_while_an_error_is_shown_is_130() -> None:
    setup = "commands.run_command = lambda words: 1 / 0; app.say = lambda text: raise_(KeyboardInterrupt())"
    assert ended(setup, "compare").returncode == 130


def test_output_that_is_left_and_cannot_be_written_is_3_and_not_120() -> None:
    with Path("/dev/full").open("w") as full:
        done = ended("commands.run_command = lambda words: sys.stdout.write('all well')and 0", "compare", stdout=full)
    assert done.returncode == 3


def test_help_of_inspect_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["inspect", "--help"]) == 0
    assert "usage: rlaudit inspect" in capsys.readouterr().out
