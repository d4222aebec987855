"""Starts one cell in its own interpreter, waits for it, and returns how it ended.

The cell runs under a guardian (guarded.py). Its events go to its events file, and its output to its log, without
secrets: an engine logs its arguments. The output passes through this process, so that a secret never reaches the log.
When this process is killed the engine ends, too (guardian.py).

vLLM V1 runs its engine in a separate process, whose parent only repeats that it failed ("Engine core initialization
failed. See root cause above"). The cause is the first exception that an engine process logged, or, without one, the
last exception that does not point elsewhere.
"""

import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO

from rlaudit.engines.cells.guarded import run_guarded
from rlaudit.engines.cells.handed_over import forget, hand_over
from rlaudit.engines.cells.inherited_variables import STRIPPED, handed_on, inherited, withheld
from rlaudit.engines.cells.own_cache import cache_of_torch
from rlaudit.engines.environments.environment_spec import Command
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.files.parse_json import parse_json
from rlaudit.secrets import mask

WORKER = Path(__file__).with_name("worker.py")
# rlaudit on the machine that runs the cell.
PACKAGE = Path(__file__).resolve().parents[2]
STARTING = ("launch", "load")
NO_MEMORY = "out-of-memory"
# Set in every cell. An engine starts Pythons with `-c` and `-m`, which without PYTHONSAFEPATH look for modules in the
# working directory first (Python 3.11; worker.py for those that multiprocessing starts in an older one).
QUIET = {**ENGINE.quiet, "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}

# A line that does not end, as a progress bar's, is passed on in pieces of this size.
_LONGEST_LINE = 65536
# After everything below the guardian has ended only a container's daemon can still hold the log.
_SECONDS_TO_FINISH = 5.0
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ENGINE_ERROR = re.compile(r"^(?:\([A-Za-z]\w*(?: pid=\d+)?\)\s+)?ERROR \S+ \S+ \[[^\]]+\]\s?(?P<text>.*)$")
PROCESS_PREFIX = re.compile(r"^\([A-Za-z]\w*(?: pid=\d+)?\)\s?")
EXCEPTION = re.compile(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt))(?:: .+)?$")
POINTS_ELSEWHERE = re.compile(
    r"Engine core initialization failed|See root cause above|EngineDeadError|EngineCore encountered an issue|"
    r"Engine process failed to start|WorkerProc initialization failed"
)
OUT_OF_MEMORY = re.compile(
    r"OutOfMemoryError|out of memory|MemoryError|Cannot allocate memory|No available memory for the cache blocks|"
    r"less than desired GPU memory utilization|can't allocate memory",
    re.IGNORECASE,
)
LONGEST_CAUSE = 400

Event = dict[str, Any]


class Cancelled(Exception):
    """The cell was cancelled, and its processes have ended."""


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result."""

    # The phase in which it stopped, or a kind of end: died, timeout, out-of-memory.
    boundary: str
    # The root cause in the engine's own words.
    message: str


@dataclass(frozen=True)
class Outcome:
    """How a cell ended."""

    # ok, failed or unsupported.
    status: str
    result: Mapping[str, Any]
    failure: Failure | None
    # Seconds and peak memory in MiB.
    usage: Mapping[str, Any]

    @property
    def why(self) -> str:
        """Why there is no result, for a sentence."""
        return self.failure.message if self.failure else "no reason given"


def shipped(script: Path) -> str:
    """Return a script's name in a job: its path in the package, or the whole path of any other script."""
    return str(script.relative_to(PACKAGE)) if script.is_relative_to(PACKAGE) else str(script)


def cell_environment(declared: Mapping[str, str], in_front: bool = False) -> dict[str, str]:
    """Return the variables that a cell inherits from this process, and the declared ones.

    in_front: for a command in front of the interpreter, such as docker. It is the user's own and may need a secret that
    no engine needs; the worker drops that.
    """
    return inherited(with_secrets=in_front) | dict(declared)


def launch(
    cell: Path,
    command: Command,
    variables: Mapping[str, str],
    timeout_seconds: float,
    on_event: Callable[[Event], None] = lambda event: None,
    refusal: re.Pattern[str] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run the job in `cell` with the interpreter at the end of `command`.

    Raises only KeyboardInterrupt, and Cancelled once `cancelled` returns True, both after the cell's processes have
    ended. The worker reads its variables from environment.json: a container passes on none of ours, and a launcher adds
    others. A command in front of the interpreter does not get them.
    """
    declared = QUIET | (cache_of_torch(variables) if len(command) == 1 else {}) | dict(variables)
    document = {
        "directory": str(Path.cwd()),
        "variables": declared,
        "handed_on": handed_on(),
        "stray": [*STRIPPED, *withheld()],
    }
    events = EventTail(cell / "events.jsonl", on_event)

    def meanwhile() -> None:
        events.read()
        if cancelled():
            raise Cancelled

    try:
        hand_over(cell, "environment.json", document)
        with masked_log(cell / "log.txt") as log:
            in_time = run_guarded(
                [*command, "-s", str(WORKER), str(cell.absolute())],
                cell_environment(declared) if len(command) == 1 else cell_environment({}, in_front=True),
                cell / "usage.json",
                timeout_seconds,
                log,
                meanwhile=meanwhile,
            )
    finally:
        forget(cell)
    events.read()
    return judge(cell, events.phase, None if in_time else timeout_seconds, refusal)


def judge(  # noqa: PLR0911 - one return for each way to end
    cell: Path, phase: str, timed_out_after: float | None = None, refusal: re.Pattern[str] | None = None
) -> Outcome:
    """Return the outcome of an ended cell from its files: its result, or the boundary and root cause of its failure.

    It is unsupported if the engine refused it: `refusal` matches the message of a failure while it starts, or a file in
    the traceback. Anything else is a failure.
    """
    usage = _read_json(cell / "usage.json")
    result = _read_json(cell / "result.json")
    if result.get("status") == "ok":
        return Outcome("ok", result, None, usage)
    lines = read_log(cell / "log.txt")
    error = result.get("error") or {}
    if result.get("status") == "unsupported":
        return Outcome("unsupported", result, Failure("unsupported", error["message"]), usage)
    if timed_out_after is not None:
        return Outcome(
            "failed",
            result,
            Failure("timeout", f"no result after {timed_out_after:.0f} s, in phase {phase}"),
            usage,
        )
    raised = f"{error['type']}: {error['message']}" if error else None
    cause = root_cause(lines) or raised
    if raised and cause and "See root cause above" not in raised and "EngineDead" not in raised:
        cause = raised
    if cause and says_out_of_memory(cause):
        return Outcome("failed", result, Failure(NO_MEMORY, _one_line(cause)), usage)
    if not result:
        return Outcome("failed", result, Failure("died", _death(usage, cause)), usage)
    failure = Failure(error.get("boundary", phase), _one_line(cause or "no message"))
    if refusal is not None:
        # 0.32.0 on CPU starts with batch invariance on and dies in its code at the first step.
        traceback = [line for line in lines if 'File "' in line]
        message = [failure.message] if failure.boundary in STARTING else []
        if any(refusal.search(text) for text in (*message, *traceback)):
            return Outcome("unsupported", result, Failure("unsupported", failure.message), usage)
    return Outcome("failed", result, failure, usage)


def _death(usage: Mapping[str, Any], cause: str | None) -> str:
    code = usage.get("exit_code")
    if isinstance(code, int) and code < 0:
        if -code == signal.SIGKILL:
            # No error of its own ends it so; what the log has last may come from its children, which end with it.
            return "the worker was ended by SIGKILL (by hand, or by the kernel for want of memory)"
        reason = f"the worker was ended by {signal.Signals(-code).name}"
    elif code is None:
        reason = "the worker and its guardian were ended from outside"
    else:
        reason = f"the worker ended with code {code} and no result"
    return reason if cause is None else f"{reason}; last error: {_one_line(cause)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:600]


def _read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file; empty if it is missing or cut off."""
    try:
        document = parse_json(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class EventTail:
    """Reads whole lines of the events file as they appear."""

    def __init__(self, path: Path, on_event: Callable[[Event], None]) -> None:
        self._path = path
        self._on_event = on_event
        self._offset = 0
        self.phase = "launch"

    def read(self) -> None:
        """Pass on the events since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as events:
            events.seek(self._offset)
            for line in events:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                event: Event = parse_json(line)
                if event["event"] == "phase":
                    self.phase = event["name"]
                self._on_event(event)


@contextmanager
def masked_log(path: Path) -> Iterator[BinaryIO]:
    """Open the output of a process, whose lines are masked and appended to `path`."""
    reading, writing = os.pipe()
    copying = Thread(target=_copy, args=(reading, path), daemon=True, name="rlaudit-log")
    copying.start()
    try:
        with os.fdopen(writing, "wb") as log:
            yield log
    finally:
        copying.join(_SECONDS_TO_FINISH)


def _copy(reading: int, path: Path) -> None:
    """Mask and append line by line. If the disk is full, go on reading: the engine must not stop half way."""
    with os.fdopen(reading, "rb") as lines:
        try:
            with path.open("ab") as log:
                while line := lines.readline(_LONGEST_LINE):
                    log.write(mask(line.decode("utf-8", errors="surrogateescape")).encode("utf-8", "surrogateescape"))
                    log.flush()
        except OSError:
            while lines.read(_LONGEST_LINE):
                pass


def read_log(path: Path) -> list[str]:
    """Return the lines of a log without their colours; empty if there is none."""
    if not path.exists():
        return []
    return [COLOUR.sub("", line) for line in path.read_text(errors="replace").splitlines()]


def root_cause(lines: list[str]) -> str | None:
    """Return the exception to blame, in the engine's words; None if the log holds none."""

    def causes(texts: Iterable[str]) -> list[str]:
        return [text for text in texts if EXCEPTION.match(text) and not POINTS_ELSEWHERE.search(text)]

    of_engine = causes(match["text"].strip() for line in lines if (match := ENGINE_ERROR.match(line)))
    if of_engine:
        return of_engine[0][:LONGEST_CAUSE]
    of_any_process = causes(PROCESS_PREFIX.sub("", line).strip() for line in lines)
    return of_any_process[-1][:LONGEST_CAUSE] if of_any_process else None


def says_out_of_memory(text: str) -> bool:
    """Return whether a message is about exhausted memory of a GPU or host."""
    return OUT_OF_MEMORY.search(text) is not None
