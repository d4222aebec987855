"""Thousands of broken and hostile files through `rlaudit inspect`: no traceback, no hang, and no file changed.

    python tests/benchmarks/inspect_hostile_inputs.py [NUMBER] [SEED] [FILE ...]

Mutates the configs under examples/ (or the files named) and adds a zoo of traps. Prints how many ended with which exit
code, the slowest, and every failure; ends with 1 where there is one. The commands run in this process, so that what is
measured is the inspection and not Python's start; seconds are the processor's, which other programs on the machine
change least, and what waits without using the processor is given up after a while.
"""

import contextlib
import hashlib
import io
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hostile_inputs import Input, mutations, traps

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


def all_inputs(number: int, seed: int, files: Sequence[Path], folder: Path) -> Iterator[Input]:
    """The traps, then mutations up to the number asked for."""
    zoo = folder / "zoo"
    zoo.mkdir()
    made = traps(zoo)
    yield from made
    random = Random(seed)
    target = folder / "mutated"
    target.mkdir()
    for count, (kind, suffix, data) in enumerate(mutations(seeds(files), number - len(made), random)):
        path = target / f"{count}{suffix}"
        path.write_bytes(data)
        yield Input(kind, (str(path),))
        path.unlink()


def report(outcomes: Sequence[Outcome]) -> int:
    """Counts, the slowest and the failures; 1 where there is a failure."""
    codes = Counter(outcome.code for outcome in outcomes)
    times = sorted(outcome.seconds for outcome in outcomes)
    print(f"{len(outcomes)} inputs; exit codes " + ", ".join(f"{code}: {codes[code]}" for code in sorted(codes)))
    print(f"median {times[len(times) // 2]:.3f} s, 99 % {times[len(times) * 99 // 100]:.3f} s, sum {sum(times):.0f} s")
    for outcome in sorted(outcomes, key=lambda one: -one.seconds)[:8]:
        print(f"  {outcome.seconds:6.2f} s  exit {outcome.code}  {outcome.kind}  {Path(outcome.paths[0]).name[:60]!r}")
    failures = [outcome for outcome in outcomes if outcome.problem]
    for outcome in failures[:40]:
        print(f"FAILED {outcome.kind} {outcome.paths[0][:200]!r}: {outcome.problem}")
    print(f"{len(failures)} failures (limit {LIMIT:.0f} s for a file)")
    return 1 if failures else 0


def main() -> int:
    """0 where nothing failed."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    files = [Path(word) for word in sys.argv[3:]] or examples()
    kept = os.environ.get("KEEP_FAILURES")
    with tempfile.TemporaryDirectory() as folder, guarded():
        outcomes = []
        for one in all_inputs(number, seed, files, Path(folder)):
            outcomes.append(measured(one))
            if outcomes[-1].problem and kept and Path(one.paths[0]).is_file():
                source = Path(one.paths[0])
                (Path(kept) / source.name).write_bytes(source.read_bytes())
        return report(outcomes)


if __name__ == "__main__":
    sys.exit(main())
