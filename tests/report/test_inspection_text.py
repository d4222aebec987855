"""The text of an inspection, at every width."""

import json
import re
from typing import Any

import pytest
from toy_dialect import PLAIN, Desk

from rlaudit.report.formats import markdown, text

ANSI = re.compile(r"\x1b\[[0-9;]*m")
CONFIG = PLAIN.replace("seed: 1", "enable_prefix_caching: true\n    served_model_name: " + "a-long-name-" * 12)


@pytest.fixture
def document(desk: Desk) -> dict[str, Any]:
    desk.file("x.yaml", CONFIG)
    desk.inspect("x.yaml", "--output", "json")
    loaded: dict[str, Any] = json.loads(desk.out)
    return loaded


def test_piped_text_is_not_cut_and_has_no_colour(document: dict[str, Any]) -> None:
    report = text.render(document, None)
    assert "\x1b" not in report
    for one in document["findings"]:
        assert f"   {one['message']}\n" in report
    lines = [line.split() for line in report.splitlines()]
    for row in document["settings"]:
        if row["moves"]:
            assert any(line[:1] == [row["name"]] and line[-1] == row["origin"] for line in lines)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_gets_colours_and_every_word(document: dict[str, Any], width: int) -> None:
    report = text.render(document, width)
    assert "\x1b[1;31merror\x1b[0m" in report
    plain = " ".join(ANSI.sub("", report).split())
    for one in document["findings"]:
        assert one["message"] in plain
        assert one["rule"] in plain
    longest = max(len(line) for line in ANSI.sub("", report).splitlines() if "long-name" not in line)
    assert longest <= max(width, 60)


def test_findings_come_before_the_table_and_the_exit_code_last(document: dict[str, Any]) -> None:
    report = text.render(document, None)
    places = [
        report.index(part)
        for part in ("x.yaml: Toy", " error x.yaml", " Settings that move", " Not seen", "Exit code 1")
    ]
    assert places == sorted(places)


def test_markdown_shows_the_words_of_a_config_and_does_not_obey_them(desk: Desk) -> None:
    desk.file("x.yaml", PLAIN + '  "<img src=x>|`": "[a](b) | *c*"\n')
    desk.inspect("x.yaml", "--output", "json")
    page = markdown.render(json.loads(desk.out), None)
    assert "<img" not in page
    assert "[a\\](b)" in page
    assert "*c*" not in page.replace("\\*c\\*", "")


def test_a_long_reason_stands_below_the_table_once_and_a_short_one_in_it(document: dict[str, Any]) -> None:
    reason = "its value is decided by a file that is not here, " * 3
    first, second, third, *_ = (row for row in document["settings"] if row["config"] == 0)
    for row, value in ((first, reason), (second, reason), (third, "the file is not here")):
        row |= {"moves": True, "effective_from": {"unknown": value}}
    report = text.render(document, None)
    assert report.count(reason.strip()) == 1 and report.count("unknown (1)") == 2 and f"(1) {reason.strip()}" in report
    assert "unknown: the file is not here" in report and "the file is not here\n" not in report
