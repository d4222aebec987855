"""The text of an inspection, at every width."""

import json
import re
from typing import Any

import pytest
from documents import records
from toy_dialect import PLAIN, Desk

from rlaudit.report.rendering.formats import markdown, text

ANSI = re.compile(r"\x1b\[[0-9;]*m")
CONFIG = PLAIN.replace("seed: 1", "enable_prefix_caching: true\n    served_model_name: " + "a-long-name-" * 12)


@pytest.fixture
def document(desk: Desk) -> dict[str, Any]:
    desk.file("x.yaml", CONFIG)
    desk.inspect("x.yaml", "--output", "json")
    loaded: dict[str, Any] = json.loads(desk.out)
    return loaded


def test_piped_text_is_not_cut_and_has_no_colour(document: dict[str, Any]) -> None:
    report = text.render_in_full(records(document), None)
    assert "\x1b" not in report
    for one in document["findings"]:
        assert f"   {one['message']}\n" in report
    lines = [line.split() for line in report.splitlines()]
    for row in document["settings"]:
        if row["moves"]:
            assert any(line[:1] == [row["name"]] and line[-1] == row["origin"] for line in lines)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_gets_colours_and_every_word_and_no_line_is_wider(document: dict[str, Any], width: int) -> None:
    report = text.render_in_full(records(document), width)
    assert "\x1b[1;31merror\x1b[0m" in report
    plain = " ".join(ANSI.sub("", report).split())
    for one in document["findings"]:
        assert one["message"] in plain
        assert one["rule"] in plain
    assert max(map(len, ANSI.sub("", report).splitlines())) <= width


def test_notes_and_settings_that_decide_nothing_are_counted_and_shown_when_asked_for(document: dict[str, Any]) -> None:
    brief, full = text.render(records(document), None), text.render_in_full(records(document), None)
    assert {"note", "error"} <= {one["severity"] for one in document["findings"]}
    assert " error x.yaml" in brief and " error x.yaml" in full
    assert " note x.yaml" not in brief and " note x.yaml" in full
    assert "ignore_patterns" not in brief and "ignore_patterns" in full
    assert "-v also shows: notes (" in brief and "-v also shows" not in full
    assert " note x.yaml" in text.render(
        records(document | {"inspection": document["inspection"] | {"fail_on": "note"}}), None
    )


def test_a_setting_that_decides_nothing_is_shown_if_something_sets_it(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN.replace("seed: 1", "scheduler_cls: mine.Scheduler"))
    desk.inspect("x.yaml", "--output", "json")
    document = json.loads(desk.out)
    (row,) = (row for row in document["settings"] if row["name"] == "scheduler_cls")
    row["moves"] = True
    lines = [line.split()[:2] for line in text.render(records(document), None).splitlines()]
    assert ["scheduler_cls", "mine.Scheduler"] in lines


def test_what_to_do_comes_first_then_findings_then_what_moves_and_what_is_open(document: dict[str, Any]) -> None:
    report = text.render(records(document), None)
    places = [
        report.index(part)
        for part in (
            "x.yaml: Toy",
            " What to do",
            " error x.yaml",
            " Settings whose value moves",
            " Open",
            " Not seen",
            "Exit",
        )
    ]
    assert places == sorted(places)


def test_markdown_shows_the_words_of_a_config_and_does_not_obey_them(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN + '  "<img src=x>|`": "[a](b) | *c*"\n')
    desk.inspect("x.yaml", "--output", "json")
    page = markdown.render_in_full(records(json.loads(desk.out)), None)
    assert "<img" not in page
    assert "[a\\](b)" in page
    assert "*c*" not in page.replace("\\*c\\*", "")


def test_what_one_fact_leaves_open_is_one_line(document: dict[str, Any]) -> None:
    fact = "the server's command is in another file"
    rows = [row for row in document["settings"] if row["config"] == 0]
    for row in rows[:7]:
        row |= {"moves": True, "written": "x", "effective_from": 1, "effective_to": {"unknown": f"it depends: {fact}"}}
        row["open_because"] = fact
    rows[7] |= {"moves": True, "written": "x", "effective_from": 1024, "effective_to": {"unknown": "no file"}}
    rows[7]["open_because"] = "no file"
    report = text.render(records(document), None)
    assert f"  - {fact}. So 7 settings with vLLM 0.18.1 are open\n" in report
    assert f"  - {rows[7]['name']} with vLLM 0.18.1 is open: no file. With 0.8.5, {rows[7]['name']} is 1024\n" in report
    assert rows[0]["name"] in text.render_in_full(records(document), None)


def test_findings_with_one_action_are_one_line_and_a_note_alone_is_no_action(document: dict[str, Any]) -> None:
    (first, *_) = document["findings"]
    decide, off = {"kind": "decide", "of": "top_k"}, {"async_scheduling": "false"}
    edit = {"path": "x.yaml", "start": 9, "end": 9, "replacement": "async_scheduling: false\n"}
    edit |= {"line": 2, "column": 1, "end_line": 2, "end_column": 1}
    fix = {"description": "Keep it off", "safe": True, "edits": [edit]}
    document["findings"] = [
        first | {"rule": "moved", "severity": "warning", "action": decide, "sets": None},
        first | {"rule": "moved", "severity": "warning", "action": {"kind": "decide", "of": "top_p"}, "sets": None},
        first | {"rule": "reset", "severity": "error", "action": {"kind": "fix", "of": ""}, "sets": off, "fix": fix},
        first | {"rule": "raw", "severity": "note", "action": {"kind": "fix", "of": ""}, "sets": off, "fix": fix},
        first | {"rule": "older", "severity": "error", "action": {"kind": "framework", "of": "verl 0.9.0 or later"}},
        first | {"rule": "idle", "severity": "note", "action": None},
        first | {"rule": "off", "severity": "note", "action": {"kind": "record", "of": ""}},
    ]
    report = text.render(records(document), None)
    what = report[report.index(" What to do") : report.index(" error ")].split("\n")
    assert what[1:4] == [
        "  - --fix writes async_scheduling: false (for reset and 1 note)",
        "  - Take verl 0.9.0 or later (for older)",
        "  - Decide on top_k, top_p (for moved)",
    ]


def test_a_row_too_wide_for_its_table_stands_below_its_name(document: dict[str, Any]) -> None:
    (row,) = (row for row in document["settings"] if row["name"] == "served_model_name")
    row["moves"] = True
    lines = ANSI.sub("", text.render(records(document), 80)).splitlines()
    (name,) = (number for number, line in enumerate(lines) if line.split() == ["served_model_name"])
    assert lines[name + 1].startswith("      written a-long-name")
    assert any(line.split()[:1] == ["setting"] for line in lines)


def test_variables_that_were_taken_at_their_defaults_are_one_line(document: dict[str, Any]) -> None:
    (config,) = document["configs"]
    taken = [{"variable": name, "sentence": f"{name} is taken at its default 1"} for name in ("TP", "SEED")]
    config |= {"taken_defaults": taken, "not_seen": [*(one["sentence"] for one in taken), "whether toys train"]}
    report = text.render(records(document), None)
    line = "  - 2 variables are taken at their defaults, unless the environment sets them: TP, SEED\n"
    assert line + "  - whether toys train\n" in report
    assert "is taken at its default" not in report


def test_a_report_of_an_older_release_without_actions_is_still_drawn(document: dict[str, Any]) -> None:
    for one in document["findings"]:
        one.pop("action", None)
    for row in document["settings"]:
        row.pop("open_because", None)
    assert "What to do" not in text.render(records(document), 80)
