"""Formats that machines split at line ends, colons and angle brackets: nothing in a config can break them."""

import itertools
import json
import random
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from documents import empty, records
from toy_dialect import PLAIN, Desk

from rlaudit.discover import discover
from rlaudit.report.rendering import formats
from rlaudit.report.rendering.formats import concise, github, gitlab, junit, markdown, sarif, text
from rlaudit.report.rendering.markdown_escaped import escaped
from rlaudit.report.rendering.report_format import ReportFormat
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


def test_gitlab_gets_an_issue_for_each_finding_and_none_has_the_fingerprint_of_another():
    twice = document(finding("a"), finding("a"), finding("b", None, severity="note", fingerprint=None))
    issues = json.loads(gitlab.render(twice, None))
    assert [issue["severity"] for issue in issues] == ["major", "major", "info"]
    assert [issue["location"]["path"] for issue in issues] == ["x.yaml", "x.yaml", "."]
    assert len({issue["fingerprint"] for issue in issues}) == 3


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
    assert [issue["description"] for issue in json.loads(gitlab.render(one, None))] == [message]
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


LIVE = """
    @org/team @someone #123 GH-123 org/repo#1 org/repo@0123abc https://evil.example/x?y=1 www.evil.example
    me@evil.example mailto:me@evil.example ftp://evil.example group/repo!7
"""
RANGES = (range(0x200B, 0x2010), range(0x2028, 0x202F), range(0x2060, 0x206A), range(0xE0001, 0xE0080, 63))
HIDDEN = (*itertools.chain(*RANGES), 0xFEFF, 0x061C, 0xAD, 0x3164)
CODE = re.compile(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)")


@pytest.mark.parametrize(
    "around", ["({})", "see {}.", "fixes {}, and", "*{}*", "`{}`", "[x]({})", "a<b {}</b>", "{}'s"]
)
@pytest.mark.parametrize("live", LIVE.split())
def test_what_would_notify_people_or_link_is_code_in_markdown_and_in_annotations(live: str, around: str) -> None:
    message = around.replace("{}", live)
    one = document(finding(message, f"a``{message}``.yaml"))
    rendered = markdown.render(one, None)
    # What GitHub looks at: the text outside of code.
    assert live not in CODE.sub("", rendered) and "evil.example" not in CODE.sub("", rendered)
    assert f"`{live}`" in rendered
    assert f"`{live}`" in github.render(one, None)


def test_names_of_settings_and_numbers_stay_plain_in_markdown() -> None:
    plain = "vllm_config.use_v1=True moves 0.8.5 -> 0.18.1 (C# 5 of 8; x != 3; 50 % at T=0.7, a @ b, Qwen/Qwen3-8B)."
    assert "`" not in escaped(plain)


@pytest.mark.parametrize("name", ["text", "concise", "markdown", "html", "junit", "github", "sarif", "json"])
def test_a_character_that_is_not_seen_is_shown_as_its_number(name: str) -> None:
    message = "".join(f"a{chr(code)}b" for code in HIDDEN)
    numbers = "".join(f"a\\x{code:02x}b" if code < 0x100 else f"a\\u{code:04x}b" for code in HIDDEN if code < 0x10000)
    one = document(finding(message, f"{message}.yaml"))
    rendered = discover(formats, "FORMAT", ReportFormat)[name].text(one, None)
    assert not set(rendered) & set(map(chr, HIDDEN))
    if name == "json":
        assert json.loads(rendered)["findings"][0]["message"] == message  # data, escaped by JSON
    elif name == "sarif":
        shown = json.loads(rendered)["runs"][0]["results"][0]["message"]["text"]
        assert not set(shown) & set(map(chr, HIDDEN)) and "a\\u202eb" in shown and "a\\U000e0040b" in shown
    else:
        unwrapped = re.sub(r"\s", "", rendered).replace("\\\\", "\\")
        assert numbers in unwrapped.replace("a\\U000e0001b", "").replace("a\\U000e0040b", "").replace(
            "a\\U000e007fb", ""
        )


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
    found = discover(formats, "FORMAT", ReportFormat)
    assert set(found) >= {"text", "concise", "json", "markdown", "sarif", "junit", "github"}
    for name, one in found.items():
        assert one.render.__module__ == f"rlaudit.report.rendering.formats.{name}"
