"""Which processes of a recorded training died, how, and what is kept of their last steps."""

import signal
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from rlaudit.counted import counted
from rlaudit.recorder.last_steps import LastSteps, last_steps
from rlaudit.recorder.recorded_process import Process
from rlaudit.recorder.recording import Recording
from rlaudit.settings.shown_step import ShownStep

# Rows of a table: enough to see how the last steps differ from those before.
SHOWN_STEPS = 10


def death_sentences(
    recording: Recording, processes: Collection[Process], alive: Collection[int] = (), code: int = 0
) -> Iterator[str]:
    """Yield sentences on those of these processes that did not end in order.

    alive: process ids of this host that still run. code: of the recorded command's exit.
    """
    if code > 128 and code - 128 in set(signal.Signals):
        yield f"the command ended with {code}: so does a process that {_signal(code - 128)} ended"
    pids = {process.pid for process in recording.processes}
    for process in processes:
        for child in process.children:
            name = f" ({child.name})" if child.name else ""
            recorded = "" if child.pid in pids else ", which is not in the recording"
            yield f"process {child.pid}{name}{recorded} was ended by {_cause(child.code)}"
    for process in processes:
        kept = None if process.pid in alive else last_steps(process)
        if kept is not None:
            yield from _kept(recording, process, kept)


def shown_steps(processes: Sequence[Process]) -> Iterator[ShownStep]:
    """Yield the last steps of these processes, as far as they are kept, each process's in order."""
    for process in processes:
        kept = last_steps(process)
        if kept is None:
            continue
        rows = [
            (
                step.at,
                ShownStep(
                    process.pid,
                    "step",
                    step.step,
                    _time(process, step.at),
                    step.requests,
                    step.tokens,
                    step.cached,
                    f"{step.ended} ended" if step.ended else "",
                ),
            )
            for step in kept.steps
        ]
        for batch in kept.batches:
            failed = batch.error is not None
            state = "failed" if failed else "returned" if batch.returned is not None else "had not returned"
            shown = (batch.requests, batch.tokens, None, state)
            rows.append((batch.at, ShownStep(process.pid, "batch", batch.batch, _time(process, batch.at), *shown)))
        yield from (row for _, row in sorted(rows, key=lambda row: row[0])[-SHOWN_STEPS:])


def _kept(recording: Recording, process: Process, kept: LastSteps) -> Iterator[str]:
    name = f" ({process.name})" if process.name else ""
    ended = "ended in order with requests in flight" if kept.left else "did not end in order, or still runs"
    parts = [f"{len(kept.steps)} steps" if kept.steps else "", f"{len(kept.batches)} batches" if kept.batches else ""]
    contents = " and ".join(part for part in parts if part) or "no step"
    until = "" if kept.at is None else f", the last at {_time(process, kept.at)}"
    flying = f"; {counted(kept.in_flight, 'request')} in flight" if kept.in_flight else ""
    yield f"process {process.pid}{name} {ended}; its last steps are kept in {kept.file.name}: {contents}{until}{flying}"
    batch = kept.computing
    if batch is not None:
        how = "had not returned" if batch.error is None else f"failed: {batch.error}"
        work = f"{counted(batch.requests, 'request')} ({counted(batch.tokens, 'token')})"
        yield f"process {process.pid}: batch {batch.batch} of {work}, begun at {_time(process, batch.at)}, {how}"
    update = _last_update(recording, process, kept)
    if update is not None and kept.at is not None:
        before = max(0.0, kept.at - update)
        yield f"process {process.pid}: the last load of weights began {before:.1f} s before that"
    yield from kept.lost


def _last_update(recording: Recording, process: Process, kept: LastSteps) -> float | None:
    loads = [load.begin for other in recording.processes if other.clock == process.clock for load in other.loads]
    return max((*loads, *kept.loads), default=None)


def _time(process: Process, at: float) -> str:
    """Return the time of day, or the host's clock if the former is not recorded."""
    try:
        if process.wall is not None:
            moment = datetime.fromtimestamp(process.wall + at - process.at, UTC)
            return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03} UTC"
    except (OverflowError, ValueError, OSError):  # clocks of a damaged recording
        pass
    return f"{at:.3f} s of its host's clock"


def _cause(code: int) -> str:
    return _signal(-code) if code < 0 else f"code {code}"


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
