"""An option that was removed ends with 2 and names what replaces it, whichever parser its command has."""

import pytest

from rlaudit.cli import app, removed_options
from rlaudit.cli.removed_options import REPLACED_BY


@pytest.mark.parametrize("name", REPLACED_BY)
def test_each_removed_option_ends_with_2_and_names_what_replaces_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(name.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"rlaudit {name} was removed" in printed.err
    assert REPLACED_BY[name] in printed.err


@pytest.mark.parametrize(
    "words",
    [
        ["curves", "--gone"],
        ["curves", "--gone=1", "a.csv", "b.csv"],
        ["curves", "a.csv", "--alpha", "0.1", "--gone", "b.csv"],
        ["lost"],
        ["lost", "run", "x"],
        ["engines", "lost"],
    ],
)
def test_it_is_found_anywhere_before_a_double_dash(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"curves --gone": "see elsewhere", "lost": "see elsewhere", "engines lost": "see elsewhere"}
    monkeypatch.setattr(removed_options, "REPLACED_BY", table)
    assert app.run(words) == 2
    assert "see elsewhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["record", "--help", "--", "python", "--gone"],
        ["compare", "--gone"],
        ["curves", "gone", "lost"],
        ["curves", "--metric=--gone", "lost", "lost"],
        [],
    ],
)
def test_words_of_another_command_or_program_are_left_alone(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"record --gone": "see elsewhere", "curves --gone": "see elsewhere", "lost": "see elsewhere"}
    monkeypatch.setattr(removed_options, "REPLACED_BY", table)
    app.run(words)
    assert "see elsewhere" not in capsys.readouterr().err
