"""What the commands of an example print, and whether that is what stands beside it.

After a change, look at what `UPDATE_EXAMPLES=1 pytest tests/examples` makes of the expected output: `git diff examples`
shows it.
"""

import difflib
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlaudit.cli.app import run

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# How improbable something is moves by orders of magnitude with the last digits of the data; small pictures move too.
IMPROBABLE = re.compile(r"adjusted p \S+|\(z \S+\)|[▁-█]+")


def change(
    case: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    exact: bool = False,
) -> str:
    """Return what an example prints otherwise than expected.txt; "" if it is the same.

    exact: an inspection measures nothing, so that no number may move, and what it says on stderr belongs to it.
    """
    # In a folder of its own: the settings and lock files of this repository say nothing about the example.
    monkeypatch.chdir(shutil.copytree(case, tmp_path / case.name))
    # A rule more or less is no change of an example.
    printed = re.sub(r"\b\d+ rules run", "N rules run", "\n".join(_transcript(case, capsys, shows_errors=exact)))
    expected = case / "expected.txt"
    if "UPDATE_EXAMPLES" in os.environ:
        expected.write_text(printed, encoding="utf-8")
    wanted = expected.read_text(encoding="utf-8")
    return _unified(wanted.splitlines(), printed.splitlines()) if exact else difference(printed, wanted)


def _transcript(case: Path, capsys: pytest.CaptureFixture[str], *, shows_errors: bool) -> Iterator[str]:
    """Each command as it would be typed, what it prints, and its exit code."""
    for line in (case / "command.txt").read_text(encoding="utf-8").splitlines():
        words = shlex.split(line)
        assert words[0] == "rlaudit", line
        code = run(words[1:])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err, printed.err
        yield f"$ {line}\n{printed.out}{printed.err if shows_errors else ''}[exit code {code}]\n"


def difference(printed: str, expected: str) -> str:
    """What two transcripts say otherwise, as a diff; "" where they say the same up to the last digits of numbers: other
    machines round otherwise.
    """
    ours, theirs = printed.splitlines(), expected.splitlines()
    blocks = difflib.SequenceMatcher(None, *([_words(line) for line in lines] for lines in (ours, theirs)), False)
    for our_first, their_first, size in blocks.get_matching_blocks():
        for our, their in zip(range(our_first, our_first + size), range(their_first, their_first + size), strict=True):
            if _numbers(ours[our]) == pytest.approx(_numbers(theirs[their]), rel=0.03, abs=2e-3):
                ours[our] = theirs[their]
    return _unified(theirs, ours)


def _unified(expected: list[str], printed: list[str]) -> str:
    return "\n".join(difflib.unified_diff(expected, printed, "expected", "printed", lineterm="", n=1))


def _words(line: str) -> str:
    return NUMBER.sub("#", IMPROBABLE.sub("", line))


def _numbers(line: str) -> list[float]:
    return list(map(float, NUMBER.findall(IMPROBABLE.sub("", line))))
