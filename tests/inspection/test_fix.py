"""Fixes change the spans they name and nothing else, converge, and never leave half a file."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_dialect
from toy_dialect import PLAIN, Desk

from rlaudit.inspection import fix as fix_module
from rlaudit.inspection.fix import EditedSpan, Misplaced, apply, moved, overlap
from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding, Fix
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.place import Edit
from rlaudit.severity import Severity

FIXED = PLAIN.replace("seed: 1", "logprobs_mode: processed_logprobs\n    seed: 1")
CACHED = PLAIN.replace("seed: 1", "enable_prefix_caching: true\n    seed: 1")


def test_the_safe_fix_is_made_and_a_second_time_changes_nothing(desk: Desk) -> None:
    path = desk.file("x.yaml")
    assert desk.inspect("x.yaml", "--fix") == 0
    assert path.read_text() == FIXED
    assert "Fixed 1 finding in 1 file: x.yaml." in desk.out
    stamp = path.stat()
    assert desk.inspect("x.yaml", "--fix") == 0
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (stamp.st_ino, stamp.st_mtime_ns)
    assert "Fixed" not in desk.out


def test_an_unsafe_fix_waits_to_be_asked_for(desk: Desk) -> None:
    path = desk.file("x.yaml", CACHED)
    assert desk.inspect("x.yaml", "--fix", "--fail-on", "warning") == 1
    assert "enable_prefix_caching: true" in path.read_text()
    assert desk.inspect("x.yaml", "--fix=unsafe", "--fail-on", "warning") == 0
    assert "enable_prefix_caching: false" in path.read_text()


@pytest.mark.parametrize(
    ("start", "line_end", "encoding"),
    [(b"\xef\xbb\xbf", "\r\n", "utf-8"), (b"", "\r\n", "utf-8"), (b"\xff\xfe", "\n", "utf-16-le")],
)
def test_line_ends_marks_and_encodings_stay(desk: Desk, start: bytes, line_end: str, encoding: str) -> None:
    def spelt(inserted: str) -> bytes:
        text = f"# ünï\n{PLAIN}".replace("\n", line_end)
        return start + text.replace("seed", f"{inserted}seed").encode(encoding)

    path = desk.file("x.yaml")
    path.write_bytes(spelt(""))
    assert desk.inspect("x.yaml", "--fix") == 0
    # The toy's own insertion brings a plain line feed; every other byte is as it was.
    assert path.read_bytes() == spelt("logprobs_mode: processed_logprobs\n    ")


@pytest.mark.parametrize("mode", [[], ["--fix"], ["--fix=unsafe"]])
@pytest.mark.parametrize("text", [CACHED, CACHED.rstrip("\n")], ids=["", "without a last line end"])
def test_a_diff_changes_nothing_and_git_applies_what_the_same_fix_writes(
    desk: Desk, mode: list[str], text: str
) -> None:
    path = desk.file("x.yaml", text)
    desk.inspect("x.yaml", "--diff", *mode)
    assert path.read_text() == text
    desk.file("fixes.patch", desk.out)
    desk.inspect("x.yaml", *(mode or ["--fix"]))
    written = path.read_text()
    desk.file("x.yaml", text)
    (desk.folder / ".git").rmdir()
    assert os.system("git init -q . && git apply fixes.patch") == 0
    assert path.read_text() == written
    assert ("enable_prefix_caching: false" in written) == (mode == ["--fix=unsafe"])
    assert "logprobs_mode: processed_logprobs" in written


def test_a_suppressed_finding_is_not_fixed(desk: Desk) -> None:
    text = "# rlaudit: ignore-file[toy-raw] meant so\n" + PLAIN
    path = desk.file("x.yaml", text)
    assert desk.inspect("x.yaml", "--fix=unsafe") == 0
    assert path.read_text() == text


def add_rule(monkeypatch: pytest.MonkeyPatch, name: str, start: str, replacement: str) -> None:
    """A rule that always finds, and whose fix replaces the first `start` of the file."""

    def check(audit):  # type: ignore[no-untyped-def]
        text = Path(audit.config.path).read_text() if not texts else texts[-1]
        at = text.find(start)
        edit = Edit(audit.config.path, at, at + len(start), replacement)
        yield rule.finding(audit, Severity.ERROR, "seed", f"{name} is never content.", Fix(name, (edit,), True))

    texts: list[str] = []
    inspect_file = fix_module.inspect_file

    def watched(file, *rest):  # type: ignore[no-untyped-def]
        texts.append(file.source.text)
        return inspect_file(file, *rest)

    monkeypatch.setattr(fix_module, "inspect_file", watched)
    rule = Rule(name, Layer.SEMANTIC, check)
    monkeypatch.setitem(toy_dialect.RULES, name, rule)


def test_of_two_fixes_at_odds_the_first_wins_and_the_other_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    add_rule(monkeypatch, "a-first", "seed: 1", "seed: 2")
    add_rule(monkeypatch, "b-second", "seed: 2", "seed: 3")
    path = desk.file("x.yaml")
    desk.inspect("x.yaml", "--fix=unsafe", "--select", "a-first,b-second")
    assert path.read_text() == PLAIN.replace("seed: 1", "seed: 2")
    assert "the fix of b-second overlaps that of a-first, which came first" in desk.out


def test_a_fix_that_would_break_the_file_is_taken_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    add_rule(monkeypatch, "breaking", "engine:", "engine: [")
    path = desk.file("x.yaml")
    desk.inspect("x.yaml", "--fix=unsafe", "--select", "breaking,toy-raw")
    assert path.read_text() == FIXED
    assert "the fix of breaking is not made: the file could not be read afterwards" in desk.out


def test_a_fix_that_changes_nothing_for_its_rule_is_made_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    add_rule(monkeypatch, "endless", "seed: 1", "seed: 1 # more")
    path = desk.file("x.yaml")
    assert desk.inspect("x.yaml", "--fix=unsafe", "--select", "endless") == 1
    assert path.read_text().count("# more") == 1


def test_two_engines_in_one_file_are_both_fixed(desk: Desk) -> None:
    path = desk.file("x.yaml", PLAIN + "---\n" + PLAIN)
    assert desk.inspect("x.yaml", "--fix") == 0
    assert path.read_text() == FIXED + "---\n" + FIXED


def test_standard_input_is_not_fixed(desk: Desk) -> None:
    assert desk.inspect("-", "--fix") == 2
    assert "standard input cannot be fixed in place" in desk.err


def test_a_fix_does_not_change_what_runs_today(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def reseed(audit: Audit) -> Iterator[Finding]:
        if audit.after.value("seed") == 1:
            fix = audit.fix("another seed", True, seed=2)
            yield FIRST.finding(audit, Severity.NOTE, "seed", "The seed is one.", fix)

    def keep(audit: Audit) -> Iterator[Finding]:
        if audit.before.value("seed") == 2:
            fix = audit.fix("keep what ran", True, max_num_seqs=8)
            yield SECOND.finding(audit, Severity.NOTE, "max_num_seqs", "Two ran.", fix)

    FIRST, SECOND = Rule("first", Layer.SEMANTIC, reseed), Rule("second", Layer.SEMANTIC, keep)
    monkeypatch.setitem(toy_dialect.RULES, "first", FIRST)
    monkeypatch.setitem(toy_dialect.RULES, "second", SECOND)
    path = desk.file("x.yaml")
    desk.inspect("x.yaml", "--fix=unsafe", "--select", "first,second")
    assert path.read_text() == PLAIN.replace("seed: 1", "seed: 2")


def edit(start: int, end: int, text: str) -> Edit:
    return Edit("x", start, end, text)


def test_replacing_inserting_and_deleting_leave_the_rest() -> None:
    assert apply("0123456789", [edit(8, 9, ""), edit(2, 4, "ab"), edit(0, 0, ">")]) == ">01ab45679"


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (edit(0, 2, "a"), edit(2, 3, "b"), True),
        (edit(0, 2, "a"), edit(1, 3, "b"), False),
        (edit(1, 1, "a"), edit(1, 1, "b"), False),
        (edit(1, 1, "a"), edit(1, 2, "b"), False),
        (edit(0, 1, "a"), edit(2, 2, "b"), True),
    ],
)
def test_edits_that_touch_the_same_characters_cannot_be_made_together(
    first: Edit, second: Edit, together: bool
) -> None:
    assert overlap(first, second) is overlap(second, first) is not together


@pytest.mark.parametrize("wrong", [[edit(2, 1, "")], [edit(0, 99, "")], [edit(0, 3, "a"), edit(2, 4, "b")]])
def test_an_edit_that_does_not_fit_is_refused(wrong: list[Edit]) -> None:
    with pytest.raises(Misplaced):
        apply("0123456789", wrong)


@pytest.mark.parametrize("seed", range(50))
def test_spans_point_at_what_the_edits_wrote(seed: int) -> None:
    draw = random.Random(seed)
    text = "".join(draw.choices("ab\n", k=40))
    edits: list[Edit] = []
    for _ in range(8):
        start = draw.randrange(40)
        one = edit(start, min(40, start + draw.randrange(5)), "".join(draw.choices("XY", k=draw.randrange(4))))
        if not any(overlap(one, other) for other in edits):
            edits.append(one)
    after = apply(text, edits)
    spans = moved([], [(one, one.replacement) for one in edits])
    assert [after[span.start : span.end] for span in spans] == [span.by for span in spans]
    # A span of before moves with what is written in front of it.
    last = max(edits, key=lambda one: one.end)
    (kept,) = moved([EditedSpan(last.end, 40, "")], [(one, "") for one in edits])[:1]
    assert after[kept.start : kept.end] == text[last.end :]
