"""What `--fix` does to every config under examples/: the lines of its own edits, once, or nothing at all."""

import difflib
import errno
import shlex
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest
from packaging.version import Version

from rlaudit.cli.app import run
from rlaudit.inspection.files import TextFile, collect
from rlaudit.inspection.fix import fix_file
from rlaudit.inspection.inspect_file import Context, InspectedFile, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.rules import known_rules
from rlaudit.rules.audit.finding import Finding
from rlaudit.settings.place import Edit
from rlaudit.vllm.machine import Machine

EXAMPLES = Path(__file__).parents[2] / "examples"
# What case studies and recorded trainings have beside their configs is compared, not inspected.
NO_CONFIGS = ("case-studies", "recorded")
CASES = sorted(path.parent for path in EXAMPLES.glob("*/*/command.txt") if path.parts[-3] not in NO_CONFIGS)
NO_CONFIG = {"command.txt", "expected.txt", "requirements.txt", "report.json", "report.md"}
PLAIN_VERSIONS = ("0.8.5", "0.18.1")
HARMFUL = "verl/temperature-in-a-script"
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
each_mode = pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])


def _versions(case: Path) -> tuple[str, str]:
    words = shlex.split((case / "command.txt").read_text(encoding="utf-8").splitlines()[0])
    said = dict(pairwise(words))
    return said.get("--from", PLAIN_VERSIONS[0]), said.get("--to", PLAIN_VERSIONS[1])


def _configs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in NO_CONFIG)


def _read(path: Path) -> TextFile:
    (file,) = collect((str(path),), "", lambda _path: False).files
    return file


def _context(case: Path) -> Context:
    before, after = map(Version, _versions(case))
    return Context(known_rules(), known_dialects(), Machine(), before, after)


def _all(file: InspectedFile) -> tuple[Finding, ...]:
    return file.findings


def _changes(before: str, after: str) -> Iterator[tuple[range, str, str]]:
    """Line numbers from 0 of the old text, the characters that went and those that came, run by run."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for lines, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if lines == "equal":
            continue
        was, now = "".join(old[first:last]), "".join(new[start:end])
        for kind, one, two, three, four in difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
            if kind != "equal":
                yield range(first, last), was[one:two], now[three:four]


def _edited_lines(before: str, findings: tuple[Finding, ...], unsafe: bool) -> set[int]:
    """Lines from 0 that a proposed edit touches; for an insertion the line on whose end it is put, too."""
    lines = set()
    for edit in _edits(findings, unsafe):
        lines |= set(range(before.count("\n", 0, edit.start), before.count("\n", 0, edit.end) + 1))
    return lines


def _edits(findings: tuple[Finding, ...], unsafe: bool) -> list[Edit]:
    fixes = [one.fix for one in findings if one.fix is not None]
    return [edit for fix in fixes if fix.safe or unsafe for edit in fix.edits]


@each_mode
@each_case
def test_only_the_lines_of_the_edits_change_and_what_was_fixed_is_not_found_again(case: Path, unsafe: bool) -> None:
    for path in _configs(case):
        inspected = inspect_file(_read(path), _context(case))
        fixed = fix_file(inspected, _context(case), unsafe, _all)
        before, again = inspected.file.source.text, fixed.inspected
        allowed = _edited_lines(before, inspected.findings, unsafe)
        written = " ".join(edit.replacement for edit in _edits(fixed.made, unsafe))
        dropped = " ".join(before[edit.start : edit.end] for edit in _edits(inspected.findings, unsafe))
        for lines, old, new in _changes(before, fixed.text):
            assert set(lines) <= allowed, (path, [before.splitlines()[line] for line in lines])
            assert all(word in written for word in new.split() if word != "\\"), path
            assert all(word in dropped for word in old.split()), path
        assert fixed.changed == bool(fixed.made)
        assert not again.unreadable and not again.bugs and fixed.refused == ()
        left = {(one.rule, one.setting) for one in again.findings}
        assert not left & {(one.rule, one.setting) for one in fixed.made}, path
        for one, other in zip(inspected.configs, again.configs, strict=True):
            # What the new release does not have may be taken away; nothing else.
            kept = {name for name in one.audit.config.engine if one.audit.after.exists(name)}
            assert kept <= other.audit.config.engine.keys()


@each_mode
@each_case
def test_a_second_time_changes_nothing_more(
    case: Path, unsafe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(case, tmp_path / case.name)
    monkeypatch.chdir(folder)
    names = [str(path.relative_to(folder)) for path in _configs(folder)]
    before, after = _versions(case)
    command = ["inspect", *names, "--from", before, "--to", after, f"--fix={'unsafe' if unsafe else 'safe'}"]
    first = run(command)
    once = {name: (Path(name).read_bytes(), Path(name).stat().st_ino) for name in names}
    capsys.readouterr()
    assert run(command) == first
    assert once == {name: (Path(name).read_bytes(), Path(name).stat().st_ino) for name in names}
    assert "Fixed" not in capsys.readouterr().out


@each_case
def test_inserted_lines_end_as_the_files_lines_do(case: Path, tmp_path: Path) -> None:
    for path in _configs(case):
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        inspected = inspect_file(_read(copy), _context(case))
        fixed = fix_file(inspected, _context(case), True, _all)
        assert fixed.text.count("\n") == fixed.text.count("\r\n")


def _refuse(*_arguments: Any, **_options: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "broken", ["pathlib.Path.write_bytes", "os.fsync", "pathlib.Path.chmod", "pathlib.Path.replace"]
)
def test_a_write_that_fails_leaves_the_file_as_it_was(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(EXAMPLES / HARMFUL, tmp_path / "case")
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(broken, _refuse)
    assert run(["inspect", "run.sh", "--from", "0.8.5", "--to", "0.18.1", "--fix=unsafe"]) == 3
    monkeypatch.undo()
    assert "run.sh could not be written and is as it was: no space left on device" in capsys.readouterr().err
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_one_file_that_cannot_be_written_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.sh", "b.sh", "c.sh"):
        shutil.copy(EXAMPLES / HARMFUL / "run.sh", tmp_path / name)
    replace: Callable[[Path, Path], Path] = Path.replace

    def sometimes(path: Path, target: Path) -> Path:
        return _refuse() if target.name == "b.sh" else replace(path, target)

    monkeypatch.setattr(Path, "replace", sometimes)
    before = (tmp_path / "b.sh").read_bytes()
    assert run(["inspect", ".", "--from", "0.8.5", "--to", "0.18.1", "--fix=unsafe"]) == 3
    assert "in 2 files: a.sh, c.sh" in capsys.readouterr().out
    assert (tmp_path / "b.sh").read_bytes() == before
    assert (tmp_path / "a.sh").read_bytes() == (tmp_path / "c.sh").read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sh", "b.sh", "c.sh"]
