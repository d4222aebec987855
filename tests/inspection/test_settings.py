"""Settings of a repository: found, checked, and overruled by the command line."""

import pytest
from toy_dialect import V0, V1, Desk


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('form = "0.8.5"', "unknown key form; did you mean from?"),
        ('baseline = "known.json"', "the key baseline was removed\n  a table silences findings: [[ignore]]"),
        ("xyz = 1", "unknown key xyz; there are: from, to"),
        ("to = 0.18", "to must be a string: vLLM to move to"),
        ('select = "toy-raw"', "select must be a list"),
        ("select = [1]", "select must be a list of strings"),
        ('fail-on = "errors"', "fail-on is 'errors'; it is one of error, warning, note, never"),
        ('[[ignore]]\nrules = "x"', "unknown key ignore.0.rules; did you mean rule?"),
        ('[[ignore]]\nreason = "x"', "ignore.0 names no rule"),
        ('[[ignore]]\nrule = "x"\nuntil = "2026-01-01"', "ignore.0.until must be a day without quotes"),
        ("[[ignore]]\nrule = 3", "ignore.0.rule must be a string"),
        ('ignore = ["toy-raw"]', "ignore is a list of tables"),
        ("to = ", "rlaudit.toml is not TOML"),
        ('select = ["toy-row"]', "'toy-row' is neither a rule nor a layer\n  did you mean toy-raw?"),
        ('platform = "h1000"', "machine 'h1000' is not known"),
    ],
)
def test_settings_that_cannot_be_meant_end_with_2_and_name_the_key(desk: Desk, content: str, says: str) -> None:
    desk.file("x.yaml")
    desk.file("rlaudit.toml", content)
    assert desk.inspect("x.yaml") == 2
    assert says in desk.err
    assert desk.out == ""
    assert "Traceback" not in desk.err


def test_pyproject_holds_them_as_well_and_the_command_line_wins(desk: Desk) -> None:
    desk.file("x.yaml")
    desk.file(
        "pyproject.toml", f'[tool.rlaudit]\nfrom = "{V0}"\nto = "{V1}"\nfail-on = "never"\nselect = ["toy-raw"]\n'
    )
    assert desk.inspect("x.yaml", migrate=False) == 0
    assert f"vLLM {V0} (engine V0) -> {V1} (engine V1)" in desk.out
    assert "toy-raw" in desk.out
    assert "toy-warm" not in desk.out
    assert desk.inspect("x.yaml", "--fail-on", "error", migrate=False) == 1
    assert desk.rules("x.yaml", "--select", "toy-warm", "--to", V0, migrate=False) == ["5 toy-warm"]


def test_a_pyproject_without_them_is_passed_over(desk: Desk) -> None:
    desk.file("x.yaml")
    desk.file("pyproject.toml", "this is not [toml")
    assert desk.inspect("x.yaml") == 1


def test_excluded_patterns_are_not_read(desk: Desk) -> None:
    desk.file("a/x.yaml")
    desk.file("b/x.yaml")
    desk.file("rlaudit.toml", 'exclude = ["a/", "*.json"]\n')
    desk.inspect(".", "--output", "concise")
    assert "b/x.yaml" in desk.out
    assert "a/x.yaml" not in desk.out


def test_nothing_above_the_repository_is_found(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.file("rlaudit.toml", "nonsense = 1\n")
    desk.file("inner/.git/HEAD", "")
    desk.file("inner/x.yaml")
    monkeypatch.chdir(desk.folder / "inner")
    assert desk.inspect("x.yaml") == 1
