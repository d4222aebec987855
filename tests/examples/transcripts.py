"""What the commands of an example print, and whether that is what stands beside it."""

import difflib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlaudit.cli.app import run

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# How improbable something is moves by orders of magnitude with the last digits of the data; small pictures move too.
IMPROBABLE = re.compile(r"adjusted p \S+|\(z \S+\)|[▁-█]+")


def transcript(case: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Each command as it would be typed, what it prints, and its exit code."""
    for line in (case / "command.txt").read_text(encoding="utf-8").splitlines():
        words = shlex.split(line)
        assert words[0] == "rlaudit", line
        code = run(words[1:])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err, printed.err
        yield f"$ {line}\n{printed.out}[exit code {code}]\n"


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
    return "\n".join(difflib.unified_diff(theirs, ours, "expected", "printed", lineterm="", n=1))


def _words(line: str) -> str:
    return NUMBER.sub("#", IMPROBABLE.sub("", line))


def _numbers(line: str) -> list[float]:
    return list(map(float, NUMBER.findall(IMPROBABLE.sub("", line))))
