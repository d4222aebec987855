"""Starts one cell in its own interpreter and waits for it, whatever becomes of either.

The cell runs under a guardian (guardian.py) that ends everything below it when the lease is dropped: on a timeout, on
Ctrl-C, and when rlaudit itself is killed. Nothing is read from a pipe: what the cell prints goes to its log, what it
has to say to its events file.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlaudit.engines.log import read_log, root_cause, says_out_of_memory

GUARDIAN = Path(__file__).with_name("guardian.py")
WORKER = Path(__file__).with_name("worker.py")
POLL_SECONDS = 0.05
# What the parent's shell may carry and a controlled arm must not: the recipe declares these or they are absent.
STRAY_PREFIXES = ("VLLM_", "PYTHON", "NCCL_", "TORCHINDUCTOR_", "TORCH_LOGS")
STARTING = ("launch", "load")
STRAY_NAMES = ("LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__")

Event = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result: the boundary where it stopped and the root cause in the engine's own words."""

    boundary: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """How a cell ended. `status` is ok, failed or unsupported; `usage` holds seconds and peak memory in MiB."""

    status: str
    result: Mapping[str, Any]
    failure: Failure | None
    usage: Mapping[str, Any]


def cell_environment(declared: Mapping[str, str], programs: Path) -> dict[str, str]:
    """The parent's environment without stray engine variables, plus the declared ones.

    `programs` comes first on the path: engines compile kernels with the ninja of their own environment.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(STRAY_PREFIXES) and name not in STRAY_NAMES
    }
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    quiet = {"PATH": path, "VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
    return kept | quiet | dict(declared)


def launch(
    cell: Path,
    python: Path,
    variables: Mapping[str, str],
    timeout_seconds: float,
    on_event: Callable[[Event], None] = lambda event: None,
    refusal: re.Pattern[str] | None = None,
) -> Outcome:
    """Run the job in `cell` with `python`; always returns, except on KeyboardInterrupt, which is re-raised when the
    cell's processes are gone."""
    log = cell / "log.txt"
    command = [str(python), "-s", str(WORKER), str(cell)]
    events = _EventTail(cell / "events.jsonl", on_event)
    timed_out = False
    with log.open("ab") as log_file, _lease() as (lease, drop):
        guardian = subprocess.Popen(
            [sys.executable, "-I", str(GUARDIAN), str(lease), str(cell / "usage.json"), *command],
            env=cell_environment(variables, python.parent),
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            pass_fds=(lease,),
            start_new_session=True,
        )
        os.close(lease)
        deadline = time.monotonic() + timeout_seconds
        try:
            while guardian.poll() is None:
                events.read()
                if time.monotonic() > deadline and not timed_out:
                    timed_out = True
                    drop()
                time.sleep(POLL_SECONDS)
        finally:
            drop()
            _wait_undisturbed(guardian)
        events.read()
    return judge(cell, events.phase, timeout_seconds if timed_out else None, refusal)


def judge(  # noqa: PLR0911 - one return for each way to end
    cell: Path, phase: str, timed_out_after: float | None = None, refusal: re.Pattern[str] | None = None
) -> Outcome:
    """What the files of an ended cell say: its result, or the boundary and root cause of its failure.

    A cell that fails while it starts, in the words that `refusal` matches or in the code whose file it matches, was
    refused by the engine: it is unsupported. Anything else that goes wrong in it stays a failure.
    """
    usage = _read_json(cell / "usage.json")
    result = _read_json(cell / "result.json")
    if result.get("status") == "ok":
        return Outcome("ok", result, None, usage)
    lines = read_log(cell / "log.txt")
    told = result.get("error") or {}
    if result.get("status") == "unsupported":
        return Outcome("unsupported", result, Failure("unsupported", told["message"]), usage)
    if timed_out_after is not None:
        return Outcome(
            "failed",
            result,
            Failure("timeout", f"no result after {timed_out_after:.0f} s, in phase {phase}"),
            usage,
        )
    raised = f"{told['type']}: {told['message']}" if told else None
    cause = root_cause(lines) or raised
    if told and raised and cause and "See root cause above" not in raised and "EngineDead" not in raised:
        cause = raised
    if cause and says_out_of_memory(cause):
        return Outcome("failed", result, Failure("out-of-memory", _one_line(cause)), usage)
    if not result:
        return Outcome("failed", result, Failure("died", _death(usage, cause)), usage)
    failure = Failure(told.get("boundary", phase), _one_line(cause or "no message"))
    if refusal is not None:
        # 0.32.0 on CPU starts with batch invariance on and dies in its code at the first step.
        own_code = [line for line in lines if 'File "' in line]
        words = [failure.message] if failure.boundary in STARTING else []
        if any(refusal.search(text) for text in (*words, *own_code)):
            return Outcome("unsupported", result, Failure("unsupported", failure.message), usage)
    return Outcome("failed", result, failure, usage)


def _death(usage: Mapping[str, Any], cause: str | None) -> str:
    code = usage.get("exit_code")
    if isinstance(code, int) and code < 0:
        name = signal.Signals(-code).name
        reason = f"the worker was ended by {name}"
        if name == "SIGKILL":
            reason += " (by hand, or by the kernel for want of memory)"
    elif code is None:
        reason = "the worker and its guardian were ended from outside"
    else:
        reason = f"the worker ended with code {code} and no result"
    return reason if cause is None else f"{reason}; last error: {_one_line(cause)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:600]


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@contextmanager
def _lease() -> Iterator[tuple[int, Callable[[], None]]]:
    """A pipe whose reading end goes to the guardian; dropping our end, or dying, ends the lease."""
    reading, writing = os.pipe()
    held = [writing]

    def drop() -> None:
        if held:
            os.close(held.pop())

    try:
        yield reading, drop
    finally:
        drop()


def _wait_undisturbed(guardian: "subprocess.Popen[bytes]") -> None:
    """A second Ctrl-C must not leave the first one's processes behind."""
    while True:
        try:
            guardian.wait()
        except KeyboardInterrupt:
            continue
        return


class _EventTail:
    """Reads whole lines of the events file as they appear."""

    def __init__(self, path: Path, on_event: Callable[[Event], None]) -> None:
        self._path = path
        self._on_event = on_event
        self._offset = 0
        self.phase = "launch"

    def read(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as events:
            events.seek(self._offset)
            for line in events:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                event: Event = json.loads(line)
                if event["event"] == "phase":
                    self.phase = event["name"]
                self._on_event(event)
