"""Known findings do not count, wherever in the file they move; new ones do."""

import json

import pytest
from toy_dialect import PLAIN, Desk

CACHED = PLAIN.replace("seed: 1", "enable_prefix_caching: true\n    seed: 1")


@pytest.fixture
def known(desk: Desk) -> Desk:
    desk.file("x.yaml")
    assert desk.inspect("x.yaml", "--write-baseline", "known.json") == 0
    return desk


def test_writing_a_baseline_accepts_todays_findings(known: Desk) -> None:
    entries = json.loads((known.folder / "known.json").read_text())["findings"]
    assert [(entry["rule"], entry["path"], entry["count"]) for entry in entries] == [
        ("toy-raw", "x.yaml", 1),
        ("toy-warm", "x.yaml", 1),
    ]
    assert not any("line" in key for entry in entries for key in entry)
    assert "2 baseline" in known.out


def test_lines_may_move_and_the_folder_may_be_another(known: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    known.file("x.yaml", "# a new line\n\n" + PLAIN)
    assert known.inspect("x.yaml", "--baseline", "known.json", "--fail-on", "note") == 0
    (known.folder / "sub").mkdir()
    monkeypatch.chdir(known.folder / "sub")
    assert known.inspect("../x.yaml", "--baseline", "../known.json", "--fail-on", "note") == 0


def test_another_value_another_file_and_a_second_time_are_new(known: Desk) -> None:
    known.file("x.yaml", PLAIN.replace("0.7", "0.8"))
    assert known.rules("x.yaml", "--baseline", "known.json") == ["5 toy-warm"]
    known.file("y.yaml")
    assert known.rules("y.yaml", "--baseline", "known.json") == ["2 toy-raw", "5 toy-warm"]
    known.file("x.yaml", PLAIN + "---\n" + PLAIN)
    assert known.rules("x.yaml", "--baseline", "known.json") == ["8 toy-raw", "11 toy-warm"]


def test_a_new_finding_counts_and_a_gone_one_is_said(known: Desk) -> None:
    known.file("x.yaml", CACHED.replace("0.7", "1.0"))
    assert known.inspect("x.yaml", "--baseline", "known.json", "--fail-on", "warning") == 1
    assert "toy-caching" in known.out
    assert "1 baseline entry no longer found" in known.out


def test_the_settings_name_a_baseline_beside_them(known: Desk) -> None:
    known.file("rlaudit.toml", 'baseline = "known.json"\n')
    assert known.inspect("x.yaml", "--fail-on", "note") == 0


@pytest.mark.parametrize("content", ["", "[]", '{"schema": "rlaudit-baseline/2", "findings": []}', '{"findings": 1}'])
def test_what_is_no_baseline_is_refused(desk: Desk, content: str) -> None:
    desk.file("x.yaml")
    desk.file("known.json", content)
    assert desk.inspect("x.yaml", "--baseline", "known.json") == 2
    assert "known.json is not a baseline" in desk.err
    assert desk.inspect("x.yaml", "--baseline", "nowhere.json") == 2
