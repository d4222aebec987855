"""Fixes change the spans they name and nothing else, converge, and never leave half a file."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_dialect
from toy_dialect import PLAIN, Desk

from rlaudit.configs.syntax.edit import Edit
from rlaudit.inspection import fix as fix_module
from rlaudit.inspection.audit import Audit, Rule
from rlaudit.inspection.finding import Finding, Fix, Severity
from rlaudit.layers import Layer

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


def test_permission_bits_and_links_stay(desk: Desk) -> None:
    path = desk.file("x.yaml")
    path.chmod(0o640)
    (desk.folder / "link.yaml").symlink_to("x.yaml")
    assert desk.inspect("link.yaml", "--fix") == 0
    assert (desk.folder / "link.yaml").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_text() == FIXED


def test_a_failed_write_leaves_the_file_and_the_folder_as_they_were(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.file("x.yaml")
    other = desk.file("y.yaml")
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "x.yaml":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    assert desk.inspect("x.yaml", "y.yaml", "--fix") == 3
    assert path.read_text() == PLAIN
    assert other.read_text() == FIXED
    assert sorted(one.name for one in desk.folder.iterdir()) == [".git", "x.yaml", "y.yaml"]
    assert "x.yaml could not be written and is as it was: no space left on device" in desk.err


def test_a_diff_changes_nothing_and_git_applies_it(desk: Desk) -> None:
    path = desk.file("sub/x.yaml", PLAIN.rstrip("\n"))
    desk.inspect("sub", "--diff")
    assert path.read_text() == PLAIN.rstrip("\n")
    assert desk.out.splitlines()[:2] == ["--- a/sub/x.yaml", "+++ b/sub/x.yaml"]
    desk.file("fixes.patch", desk.out)
    (desk.folder / ".git").rmdir()
    assert os.system("git init -q . && git apply fixes.patch") == 0
    assert path.read_text() == FIXED.rstrip("\n")


@pytest.mark.parametrize("mode", [[], ["--fix"], ["--fix=unsafe"]])
def test_a_diff_is_what_the_same_fix_writes(desk: Desk, mode: list[str]) -> None:
    path = desk.file("x.yaml", CACHED)
    desk.inspect("x.yaml", "--diff", *mode)
    desk.file("fixes.patch", desk.out)
    desk.inspect("x.yaml", *(mode or ["--fix"]))
    written = path.read_text()
    desk.file("x.yaml", CACHED)
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
