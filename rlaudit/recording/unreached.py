"""Processes of a command that the recorder does not reach, found by looking at the command's processes every second.

A process is not reached if its Python leaves PYTHONPATH out (-I, -E) or runs no sitecustomize (-S), if its environment
has lost one of the recorder's two variables, or if the processes that it starts run elsewhere (in a container, on
another host).
Not seen: a process that lives for less than a second, and one whose parent ended before it was first seen.
Linux: proc(5).
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlaudit.recording.proc import command_line, environment_of, parent_of, words_of

_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
# Options of Python's that take a value, in the same word or in the next.
_WITH_VALUE = "WX"
_ELSEWHERE = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), "what runs in its containers is not recorded"),
    **dict.fromkeys(("kubectl", "ssh"), "what it starts on other hosts is not recorded"),
}


@dataclass(frozen=True)
class Unreached:
    """One process that is not recorded, and why."""

    pid: int
    words: tuple[str, ...]
    why: str


@dataclass
class Onlooker:
    """Looks at the processes below a command, and remembers those that the recorder does not reach."""

    # The folder of the recorder.
    folder: Path
    # Command lines of the command's living processes, as the kernel gives them.
    _lines: dict[int, bytes] = field(default_factory=dict)
    _others: set[int] = field(default_factory=set)
    _unreached: dict[int, Unreached] = field(default_factory=dict)

    def look(self, root: int) -> None:
        """Look at the process `root` and all below it.

        Only the parents of new processes are read: on a machine with thousands, all of them take a tenth of a second.
        """
        numbers = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - names are enough
        self._others &= numbers
        self._lines = {pid: line for pid, line in self._lines.items() if pid in numbers}
        self._lines.setdefault(root, b"")
        parents = {pid: parent_of(pid) for pid in numbers - self._others - self._lines.keys()}
        for pid in parents:
            above: int | None = pid
            while above in parents:
                above = parents[above]
            if above in self._lines:
                self._lines[pid] = b""
            else:
                self._others.add(pid)
        for pid in list(self._lines):
            self._look_at(pid)

    def unreached(self, recorded: Collection[int]) -> list[Unreached]:
        """Return the processes that are not recorded, in the order in which they were seen.

        recorded: the process ids of those that are.
        """
        return [process for process in self._unreached.values() if process.pid not in recorded]

    def alive(self, pids: Collection[int]) -> list[int]:
        """Return those of the process ids that still belong to processes of the command."""
        return [pid for pid in pids if pid in self._lines and command_line(pid)]

    def _look_at(self, pid: int) -> None:
        line = command_line(pid)
        # Nothing is left of a process that has ended and whose parent has not noticed.
        if not line or line == self._lines[pid]:
            return
        self._lines[pid] = line
        words, environment = words_of(line), environment_of(pid)
        if not command_line(pid):
            return  # it has ended meanwhile, and with it its environment
        why = why_unreached(words, environment, self.folder)
        if why is not None:
            self._unreached[pid] = Unreached(pid, words, why)
        elif _is_python(words):
            # Between fork and exec it looked like its parent.
            self._unreached.pop(pid, None)


def why_unreached(words: Sequence[str], environment: Mapping[str, str] | None, folder: Path) -> str | None:
    """Return why a process with this command line is not recorded; None if there is no reason.

    environment: the one at its start; None if it cannot be read, as another user's process's.
    """
    if not _is_python(words):
        return _ELSEWHERE.get(_base(words[0])) if words else None
    options, program = _python_options(words)
    lacks = _lacks(environment or {}, folder)
    reasons = {
        "the job that it submits is not recorded": [_base(word) for word in program[:2]] == ["ray", "job"],
        "-I leaves PYTHONPATH out": "I" in options,
        "-E leaves PYTHONPATH out": "E" in options,
        str(lacks): lacks is not None,
        "-S leaves sitecustomize out, and only vLLM's own door is left": "S" in options,
    }
    return next((why for why, holds in reasons.items() if holds), None)


def _lacks(environment: Mapping[str, str], folder: Path) -> str | None:
    """Return which of the recorder's two variables an environment has lost; None for none."""
    if str(folder) not in environment.get("PYTHONPATH", "").split(os.pathsep):
        return "its PYTHONPATH lacks the recorder's folder"
    return None if environment.get("RLAUDIT_RECORD") else "its environment lacks RLAUDIT_RECORD"


def _is_python(words: Sequence[str]) -> bool:
    return bool(words) and _PYTHON.fullmatch(_base(words[0])) is not None


def _python_options(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the letters of Python's own options, and the program with its arguments: a path, or what -m names."""
    letters = ""
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-", "--"):
        word, place = words[place], place + 1
        if word.startswith("--"):
            place += word == "--check-hash-based-pycs"
            continue
        for index, letter in enumerate(word[1:], 1):
            letters += letter
            value = word[index + 1 :]
            if letter == "m":
                return letters, [value, *words[place:]] if value else words[place:]
            if letter == "c":
                return letters, []
            if letter in _WITH_VALUE:
                place += not value
                break
    return letters, words[place:]


def _base(word: str) -> str:
    return word.rpartition("/")[2]
