"""One `rlaudit inspect` of hostile files, guarded: a traceback, a hang and a changed file are each a problem.

The commands run in this process, so that what is measured is the inspection and not Python's start; seconds are the
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

from hostile_inputs import Input

from rlaudit.cli.app import run

LIMIT = 2.0
# Of the processor, and by the clock: the latter ends only what waits, however busy the machine is with other things.
GIVEN_UP = 20.0
WAITED = 300.0
MEMORY = 6 << 30
VERSIONS = ("--from", "0.8.5", "--to", "0.18.1")
ALLOWED = {0, 1, 2, 3}
EXAMPLES = Path(__file__).parents[2] / "examples"
NO_CONFIG = {"command.txt", "expected.txt", "report.json", "report.md"}


@dataclass(frozen=True)
class Outcome:
    """One command. problem: why it counts as a failure, else empty."""

    kind: str
    paths: Sequence[str]
    code: int
    seconds: float
    problem: str


class Hang(BaseException):
    """The command was given up; no `except Exception` may catch this."""


def seeds(files: Sequence[Path]) -> list[tuple[str, bytes]]:
    """Suffix and bytes of each file."""
    return [(path.suffix, path.read_bytes()) for path in files]


def examples() -> list[Path]:
    """Every config under examples/."""
    return sorted(path for path in EXAMPLES.glob("*/*/*") if path.is_file() and path.name not in NO_CONFIG)


def measured(one: Input, *more: str) -> Outcome:
    """Inspect, with output caught and a limit on the time."""
    before = [_state(path) for path in one.paths]
    printed, said = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, GIVEN_UP * min(one.files, 4))
    signal.setitimer(signal.ITIMER_REAL, WAITED * min(one.files, 4))
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            code = run(["inspect", *VERSIONS, *more, "--", *one.paths])
    except Hang:
        code = -1
    except BaseException as error:
        return Outcome(one.kind, one.paths, -2, time.process_time() - started, f"raised {error!r:.200}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.process_time() - started
    changed = [path for path, was in zip(one.paths, before, strict=True) if _state(path) != was]
    return Outcome(
        one.kind, one.paths, code, seconds, _problem(code, seconds, said.getvalue(), changed, LIMIT * one.files)
    )


def _problem(code: int, seconds: float, said: str, changed: Sequence[str], limit: float) -> str:
    if code == -1:
        return f"given up after {seconds:.1f} s of the processor"
    if code not in ALLOWED or "Traceback" in said or "a bug in rlaudit" in said:
        return f"exit code {code}: {said.strip()[-600:]}"
    if changed:
        return f"changed {', '.join(changed)}"
    return f"took {seconds:.1f} s" if seconds > limit else ""


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
