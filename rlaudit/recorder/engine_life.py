"""An engine's life over time: when weights, caches and the schedule were touched, and what was sampled meanwhile.

Numbers and a few words of our own: nothing of it names a token, a text or a place. Seconds since the recording began.
Covered: tokens of all requests; the share of prompts that came from the prefix cache, of kept sequences. Not covered:
calls of a host whose clock is another, and how far the trainer is ahead (`compare` says it, token by token).
Standard library only: `inspect` draws it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rlaudit.recorder.recorded_process import Call, Process, token_records
from rlaudit.recorder.recording import Recording
from rlaudit.recorder.weight_updates import CLEARING, PAUSING, RESUMING, ServedWeights

BINS = 120


class Happened(StrEnum):
    """What was done to an engine."""

    UPDATE = "weight update"
    PAUSE = "pause"
    SLEEP = "sleep"
    RESET = "prefix cache reset"
    REFUSED = "prefix cache reset refused"


@dataclass(frozen=True)
class Mark:
    """Something that was done. what: a Happened, or a word of another release. end: None if it was not seen to end.
    failed: whether it raised.
    """

    what: str
    begin: float
    end: float | None
    failed: bool = False


@dataclass(frozen=True)
class Bin:
    """A part of the time. cached: the share of the prompts' tokens, None without a kept prompt whose share is known.

    version: of the weights, at its end.
    """

    begin: float
    tokens: int
    cached: float | None
    version: int


@dataclass(frozen=True)
class EngineLife:
    """One front end. seconds: how long the recording is; each bin has the same length."""

    seconds: float
    bins: tuple[Bin, ...]
    marks: tuple[Mark, ...]
    updates: int


def engine_life(served: ServedWeights, recording: Recording) -> EngineLife:
    """Return the life of one front end of a recording. It reads the file of the front end."""
    processes = [process for process in recording.processes if process.clock == served.front.clock]
    begin = min(process.at for process in processes)
    clocks = [clock for process in processes for clock in _clocks(process)]
    clocks += [clock for clock in served.steps.stamps if math.isfinite(clock)]
    seconds = max((clock - begin for clock in clocks), default=0.0)
    width = seconds / BINS or 1.0

    def bin_of(clock: float) -> int:
        return min(BINS - 1, max(0, int((clock - begin) / width)))

    tokens, cached, prompts = [0] * BINS, [0] * BINS, [0] * BINS
    for stamp, count in zip(served.steps.stamps, served.steps.tokens, strict=True):
        if math.isfinite(stamp):
            tokens[bin_of(stamp)] += count
    for stamp, share, prompt in _cached(served):
        cached[bin_of(stamp)] += share
        prompts[bin_of(stamp)] += prompt
    bins = tuple(
        Bin(
            number * width,
            tokens[number],
            cached[number] / prompts[number] if prompts[number] else None,
            served.version_at(begin + (number + 1) * width),
        )
        for number in range(BINS)
    )
    marks = sorted(_marks(served, begin), key=lambda mark: mark.begin)
    return EngineLife(seconds, bins, tuple(marks), len(served.updates))


def _clocks(process: Process) -> Iterator[float]:
    yield process.at
    yield from (call.end or call.begin for call in process.calls)
    yield from (load.end or load.begin for load in process.loads)
    if process.totals is not None:
        yield process.totals.at


def _marks(served: ServedWeights, start: float) -> Iterator[Mark]:
    for update in served.updates:
        end = None if update.end is None else update.end - start
        yield Mark(Happened.UPDATE, update.begin - start, end, update.error is not None)
    calls = served.engine.calls
    yield from _spans(calls, start, Happened.PAUSE, PAUSING, RESUMING)
    yield from _spans(calls, start, Happened.SLEEP, frozenset({"sleep"}), frozenset({"wake_up"}))
    for call in calls:
        if call.name == CLEARING:
            what = Happened.REFUSED if call.result is False else Happened.RESET
            yield Mark(what, call.begin - start, None, call.error is not None)


def _spans(
    calls: Sequence[Call], start: float, what: Happened, opening: frozenset[str], closing: frozenset[str]
) -> Iterator[Mark]:
    """Yield from the first opening call to the next closing one: front end and engine core both record one pause."""
    opened: Call | None = None
    for call in calls:
        if call.name in opening:
            opened = opened or call
        elif call.name in closing and opened is not None:
            yield Mark(what, opened.begin - start, (call.end or call.begin) - start, opened.error is not None)
            opened = None
    if opened is not None:
        yield Mark(what, opened.begin - start, None, opened.error is not None)


def _cached(served: ServedWeights) -> Iterator[tuple[float, int, int]]:
    """Yield when each kept sequence had its first token, its prompt's tokens from the cache, and all of them."""
    lengths: dict[str, int] = {}
    for _, record in token_records(served.front, ("prompt", "sequence")):
        if record["kind"] == "prompt":
            lengths[record["prompt"]] = len(record["ids"].rstrip("=")) * 3 // 16
        elif record["cached"] is not None and record["steps"] and lengths.get(record["prompt"]):
            stamps, step = served.steps.stamps, record["steps"][0][0]
            stamp = stamps[step] if step < len(stamps) else math.nan
            yield stamp if math.isfinite(stamp) else record["at"], record["cached"], lengths[record["prompt"]]
