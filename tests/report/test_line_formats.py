"""Formats that machines split at line ends, colons and angle brackets: nothing in a config can break them."""

import random
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from documents import empty, records
from toy_dialect import PLAIN, Desk

from rlaudit.rendering.formats import concise, github, junit, markdown, sarif, text
from rlaudit.report.report import Report

COMMAND = re.compile(r"::(error|warning|notice) (?P<properties>[^\n]*?)::(?P<data>[^\n]*)")


def finding(message: str = "m", path: str | None = "x.yaml", **more: Any) -> dict[str, Any]:
    place = (
        {"path": path, "line": 1, "column": 2, "setting": "s"}
        if path
        else dict.fromkeys(("path", "line", "column", "setting"))
    )
    return {"rule": "a-rule", "layer": "semantic", "severity": "error", "message": message, "location": place,
            "setting": "s", "value": "", "confirm": "", "fix": None, "suppressed": None, "fingerprint": "0",
            **more}  # fmt: skip


def document(*findings: dict[str, Any]) -> Report:
    about = {"files_read": 1, "files_with_config": 1, "configs": 1, "settings": 0, "rules": 1, "platform": "cuda",
             "machine": "H100", "fail_on": "error", "counted": {"error": 1, "warning": 0, "note": 0}, "suppressed": {},
             "stale_baseline_entries": 0, "unread": [], "bugs": [], "files_of_other_kinds": 0,
             "fixes": {"made": 0, "files": [], "written": False, "refused": []}}  # fmt: skip
    return records({**empty("inspect", 1), "findings": list(findings), "configs": [], "inspection": about})


def undo(escaped: str) -> str:
    """As the runner of GitHub Actions does."""
    for sign, instead in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        escaped = escaped.replace(sign, instead)
    return escaped


SIGNS = "ab :,%|<>&\"'`*_[]()\\#\0\x1b\x7f\x85\r\n\t\u2028\u202e\ufeff\ufffe\udc80é漢\U0001f600"


@pytest.mark.parametrize("seed", range(60))
def test_whatever_a_config_says_each_format_stays_what_it_is(seed: int) -> None:
    draw = random.Random(seed)
    message, path = ("".join(draw.choices(SIGNS, k=draw.randint(1, 30))) for _ in range(2))
    one = document(finding(message, path))
    commands = github.render(one, None)
    assert commands.count("\n") == 1
    assert COMMAND.fullmatch(commands.strip("\n"))
    assert concise.render(one, None).count("\n") == 1
    root = ElementTree.fromstring(junit.render(one, None).encode("utf-8"))
    assert len(root.findall("testsuite/testcase/failure")) == 1
    sarif.render(one, None).encode("ascii")
    for width in (None, 60):
        text.render(one, width).encode("utf-8")
    markdown.render(one, None).encode("utf-8")


@pytest.mark.parametrize("words", ["50%", "a\nb", "%0A", "a::b", "c:\\d, e"])
def test_github_gets_back_what_was_meant(words: str) -> None:
    match = COMMAND.fullmatch(github.render(document(finding(words, words)), None).strip("\n"))
    assert match
    assert undo(match["data"]) == words
    properties = dict(pair.split("=", 1) for pair in match["properties"].split(","))
    assert undo(properties["file"]) == words
    assert properties["line"] == "1"


def test_junit_fails_where_the_exit_code_does(desk: Desk) -> None:
    def states(*options: str) -> list[tuple[str, str, list[str]]]:
        desk.inspect("x.yaml", "y.yaml", *options, "--output", "junit")
        cases = ElementTree.fromstring(desk.out).iter("testcase")
        return [(case.attrib["classname"], case.attrib["name"], [child.tag for child in case]) for case in cases]

    desk.file("x.yaml", "# rlaudit: ignore-file[toy-raw] known\n" + PLAIN)
    desk.file("y.yaml")
    assert states() == [
        ("x.yaml", "toy-raw", ["skipped"]),
        ("x.yaml", "toy-warm", ["system-out"]),
        ("y.yaml", "toy-raw", ["failure"]),
        ("y.yaml", "toy-warm", ["system-out"]),
    ]
    assert ("y.yaml", "toy-warm", ["failure"]) in states("--fail-on", "note")
    assert ("y.yaml", "toy-raw", ["system-out"]) in states("--fail-on", "never")
    assert states("--select", "toy-caching", "--ignore", "suppression-unused") == [
        ("x.yaml", "inspect", []),
        ("y.yaml", "inspect", []),
    ]


def test_junit_counts_what_could_not_be_read_as_an_error(desk: Desk) -> None:
    desk.file("x.yaml")
    desk.inspect("x.yaml", "gone.yaml", "--output", "junit")
    root = ElementTree.fromstring(desk.out)
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("3", "1", "1")


def test_a_file_without_findings_is_there_all_the_same(desk: Desk) -> None:
    desk.file("x.yaml")
    desk.inspect("x.yaml", "--select", "toy-caching")
    assert "x.yaml: Toy, vLLM 0.8.5" in desk.out
    assert "0 errors, 0 warnings, 0 notes." in desk.out


def test_every_format_is_called_what_its_file_is_called() -> None:
    from rlaudit.discover import discover
    from rlaudit.rendering import formats
    from rlaudit.rendering.report_format import ReportFormat

    found = discover(formats, "FORMAT", ReportFormat)
    assert set(found) >= {"text", "concise", "json", "markdown", "sarif", "junit", "github"}
    for name, one in found.items():
        assert one.render.__module__ == f"rlaudit.rendering.formats.{name}"
