"""What a recording came to, in the sentences with which `rlaudit record` ends."""

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from rlaudit.recording.engine_processes import parent_server
from rlaudit.recording.recorded_process import Process
from rlaudit.recording.recording import ENDING, Recording
from rlaudit.recording.trainer_functions import unread_trainers
from rlaudit.recording.unreached import Unreached

# More processes of one kind than this are counted, not named.
_NAMED = 5
_LONGEST_COMMAND_LINE = 120


def has_engine(recording: Recording | None) -> bool:
    """Return whether an engine is in a recording."""
    return recording is not None and any(process.engines for process in recording.processes)


def recorded_here(recording: Recording | None) -> set[int]:
    """Return the process ids of this host's processes in a recording."""
    host = os.uname().nodename
    return {process.pid for process in (recording.processes if recording else ()) if process.host == host}


def closing(
    out: Path,
    recording: Recording | None,
    unreached: Collection[Unreached],
    still_running: Collection[int],
) -> Iterator[str]:
    """Yield sentences on what was recorded, what is missing, which processes were not reached, and what to do next.

    recording: None if nothing was recorded. still_running: recorded processes that the command left behind.
    """
    if recording is None:
        yield f"nothing was recorded in {out}"
    else:
        yield f"recorded in {out}: {_counts(recording)}"
        yield from _missing(recording)
    if still_running:
        pids = ", ".join(str(pid) for pid in list(still_running)[:_NAMED])
        yield f"the recording may grow: {_number(len(still_running), 'process', 'processes')} still running ({pids})"
    yield from _unreached(unreached)
    if recording is not None:
        place = shlex.quote(str(out))
        yield f"next:\n  rlaudit inspect {place}\n  rlaudit compare {place}"


def _counts(recording: Recording) -> str:
    processes = recording.processes
    totals = [process.totals for process in processes if process.totals is not None]
    engines = sum(len(process.engines) for process in processes if parent_server(process, processes) is None)
    size = sum(file.stat().st_size for file in recording.path.glob(ENDING))
    return ", ".join(
        (
            _number(len(processes), "process", "processes"),
            _number(engines, "engine"),
            _number(sum(count.requests or 0 for count in totals), "request"),
            _number(sum(count.sequences or 0 for count in totals), "sequence"),
            _number(sum(count.tokens or 0 for count in totals), "token"),
            f"{size / 1e6:,.1f} MB",
        )
    )


def _missing(recording: Recording) -> Iterator[str]:
    processes = recording.processes
    if recording.absent:
        yield (
            f"not recorded, because the run loaded none of the functions that rlaudit watches: "
            f"{', '.join(recording.absent)}"
        )
    for what, why in dict.fromkeys(dropped for process in processes for dropped in process.dropped):
        yield f"not recorded from some moment on: {what} ({why})"
    yield from unread_trainers(recording)
    failed = Counter(failure for process in processes for failure in process.failed)
    for (hook, error), times in failed.most_common(_NAMED):
        yield f"the recorder failed in {hook}{f' ({times} times)' if times > 1 else ''}: {error}"
    if len(failed) > _NAMED:
        yield f"and in {len(failed) - _NAMED} other ways"
    killed = [process for process in processes if _lost_its_end(process)]
    if killed:
        yield (
            f"{len(killed)} of {_number(len(processes), 'process', 'processes')} did not end in order: their last "
            "seconds may be missing from these counts"
        )


def _lost_its_end(process: Process) -> bool:
    """Return whether a process that counted requests has no last count. Others may have nothing left to write."""
    return process.totals is not None and not process.totals.ended and bool(process.totals.requests)


def _unreached(unreached: Collection[Unreached]) -> Iterator[str]:
    alike = Counter((_command_line(process), process.why) for process in unreached)
    pids = {(_command_line(process), process.why): process.pid for process in unreached}
    for (command, why), times in list(alike.items())[:_NAMED]:
        which = f"process {pids[command, why]}" if times == 1 else f"{times} processes"
        yield f"not reached: {command} ({which}): {why}"
    if len(alike) > _NAMED:
        yield f"not reached: {len(alike) - _NAMED} other command lines"


def _command_line(process: Unreached) -> str:
    text = shlex.join(process.words).replace("\n", " ")
    return text if len(text) <= _LONGEST_COMMAND_LINE else text[: _LONGEST_COMMAND_LINE - 3] + "..."


def _number(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
