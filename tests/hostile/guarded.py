"""One command over hostile files, guarded: a traceback, a hang, another exit code and a changed file are problems.

The command runs in this process, so that what is measured is the command and not Python's start; seconds are the
processor's, which other programs on the machine change least, and what waits without using the processor is given up
after a while.
"""

import contextlib
import hashlib
import io
import os
import resource
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.cli.app import run

# Of the processor, and by the clock: the latter ends only what waits, however busy the machine is with other things.
GIVEN_UP = 60.0
WAITED = 120.0
MEMORY = 6 << 30
ALLOWED = {0, 1, 2, 3}


@dataclass(frozen=True)
class Outcome:
    """One command. problem: why it counts as a failure, else empty."""

    words: Sequence[str]
    code: int
    problem: str


class Hang(BaseException):
    """The command was given up; no `except Exception` may catch this."""


def measured(words: Sequence[str], untouched: Sequence[str] = (), seconds: float = GIVEN_UP) -> Outcome:
    """Run a command with its output caught. untouched: files that it may not change; seconds: what it may take."""
    before = [_state(path) for path in untouched]
    printed, said = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, GIVEN_UP)
    signal.setitimer(signal.ITIMER_REAL, WAITED)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            code = run(list(words))
    except Hang:
        return Outcome(words, -1, f"given up after {time.process_time() - started:.1f} s of the processor")
    except BaseException as error:
        return Outcome(words, -2, f"raised {error!r:.200}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    took, text = time.process_time() - started, said.getvalue()
    changed = [path for path, was in zip(untouched, before, strict=True) if _state(path) != was]
    if code not in ALLOWED or "Traceback" in text or "a bug in rlaudit" in text:
        return Outcome(words, code, f"exit code {code}: {text.strip()[-600:]}")
    if changed:
        return Outcome(words, code, f"changed {', '.join(changed)}")
    return Outcome(words, code, f"took {took:.1f} s" if took > seconds else "")


def _state(path: str) -> object:
    """What must stay: kind, size, time and content of a regular file."""
    try:
        status = os.lstat(path)
        plain = Path(path).is_file() and not Path(path).is_symlink() and status.st_mode & 0o400
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest() if plain else ""
    except (OSError, ValueError):
        return None
    return status.st_mode, status.st_size, status.st_mtime_ns, content


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Inside, what hangs is given up, and what reads /dev/zero meets the end of memory before the machine does."""

    def hang(_signal: int, _frame: object) -> None:
        raise Hang

    handlers = {number: signal.signal(number, hang) for number in (signal.SIGPROF, signal.SIGALRM)}
    memory = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, memory[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, memory)
        for number, handler in handlers.items():
            signal.signal(number, handler)
