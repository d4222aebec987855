"""What earlier releases had and this one has not: exit code 2, with what does its work now."""

import pytest

from rlaudit.cli.app import run
from rlaudit.cli.removed import REPLACEMENTS


@pytest.mark.parametrize("asked", REPLACEMENTS, ids=" ".join)
def test_a_removed_command_or_option_names_what_replaces_it(
    asked: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    command, *option = asked
    words = [command, "log", *(f"{name}=value" for name in option)]
    assert run(words) == 2
    shown = capsys.readouterr()
    assert f"rlaudit {' '.join(asked)} was removed" in shown.err
    assert REPLACEMENTS[asked] in " ".join(shown.err.split())
    assert shown.out == ""


def test_a_word_behind_the_end_of_the_options_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["curves", "--", "--tensorboard", "log.csv"]) != 0
    assert "was removed" not in capsys.readouterr().err


def test_nothing_that_is_there_is_called_removed() -> None:
    from typer.main import get_command

    from rlaudit.cli.commands import COMMANDS, app

    there = get_command(app)
    for command, *option in REPLACEMENTS:
        if not option:
            assert command not in COMMANDS
            continue
        known = there.get_command(None, command)  # type: ignore[attr-defined]
        assert option[0] not in {name for one in known.params for name in one.opts}
