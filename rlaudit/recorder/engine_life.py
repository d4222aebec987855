"""An engine's life over time: when weights, caches and the schedule were touched, and what was sampled meanwhile.

Numbers and a few words of our own: nothing of it names a token, a text or a place. Seconds since the recording began.
Covered: tokens of all requests; the share of prompts that came from the prefix cache, of kept sequences; how many
updates had ended between a token and the trainer's first look at it, as far as the trainer was recorded on the same
host. Not covered: calls of a host whose clock is another.
Standard library only: `inspect` draws it.
"""

import base64
import binascii
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from rlaudit.recorder.recording import Call, Process, Recording, token_records
from rlaudit.recorder.weight_updates import CLEARING, PAUSING, RESUMING, ServedWeights

BINS = 120
# Of completions that are held to be met again in the trainer's rows; of a longer recording its first part is.
MOST_HELD_BYTES = 64 << 20
_FIRST = 16  # bytes of four ids, by which candidates are found


class Happened(StrEnum):
    """What was done to an engine."""

    UPDATE = "weight update"
    PAUSE = "pause"
    SLEEP = "sleep"
    RESET = "prefix cache reset"
    REFUSED = "prefix cache reset refused"


@dataclass(frozen=True)
class Mark:
    """Something that was done. end: None if it was not seen to end. failed: whether it raised."""

    what: Happened
    begin: float
    end: float | None
    failed: bool = False


@dataclass(frozen=True)
class Bin:
    """A part of the time. cached: the share of the prompts' tokens, None without a kept prompt whose share is known.

    lag: mean number of updates, None without a token that a trainer scored. version: of the weights, at its end.
    """

    begin: float
    tokens: int
    cached: float | None
    lag: float | None
    version: int


@dataclass(frozen=True)
class EngineLife:
    """One front end. seconds: how long the recording is; each bin has the same length. lag_of: tokens with a lag."""

    seconds: float
    bins: tuple[Bin, ...]
    marks: tuple[Mark, ...]
    updates: int
    lag_of: int


@dataclass
class _Mean:
    total: float = 0.0
    weight: float = 0.0

    def value(self) -> float | None:
        return self.total / self.weight if self.weight else None


def engine_life(served: ServedWeights, recording: Recording) -> EngineLife:
    """Return the life of one front end of a recording. It reads the files of the front end and of the trainers."""
    own = [one for one in recording.processes if one.clock == served.front.clock]
    begin = min(one.at for one in own)
    clocks = [clock for one in own for clock in _clocks(one)]
    clocks += [clock for clock in served.steps.stamps if math.isfinite(clock)]
    seconds = max((clock - begin for clock in clocks), default=0.0)
    width = seconds / BINS or 1.0
    cached, lags = [_Mean() for _ in range(BINS)], [_Mean() for _ in range(BINS)]

    def bin_of(clock: float) -> int:
        return min(BINS - 1, max(0, int((clock - begin) / width)))

    tokens = [0] * BINS
    for stamp, count in zip(served.steps.stamps, served.steps.tokens, strict=True):
        if math.isfinite(stamp):
            tokens[bin_of(stamp)] += count
    for stamp, share, prompt in _cached(served):
        cached[bin_of(stamp)].total += share
        cached[bin_of(stamp)].weight += prompt
    known = [bin_of(stamp) if math.isfinite(stamp) else None for stamp in served.steps.stamps]
    for number, count, lag in _lags(served, own, _binned(served, known)):
        lags[number].total += lag
        lags[number].weight += count
    bins = tuple(
        Bin(
            number * width,
            tokens[number],
            cached[number].value(),
            lags[number].value(),
            served.version_at(begin + (number + 1) * width),
        )
        for number in range(BINS)
    )
    marks = sorted(_marks(served, begin), key=lambda one: one.begin)
    return EngineLife(seconds, bins, tuple(marks), len(served.updates), int(sum(one.weight for one in lags)))


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
    calls = sorted((call for process in served.processes for call in process.calls), key=lambda call: call.begin)
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
            stamp = _stamp(served, record["steps"][0][0])
            yield record["at"] if stamp is None else stamp, record["cached"], lengths[record["prompt"]]


def _stamp(served: ServedWeights, step: int) -> float | None:
    stamps = served.steps.stamps
    return stamps[step] if step < len(stamps) and math.isfinite(stamps[step]) else None


@dataclass
class _Sampled:
    """A completion that no trainer has scored yet."""

    ids: bytes
    finished: float
    steps: Sequence[Sequence[int]]


@dataclass(frozen=True)
class _BinnedSteps:
    """Steps by their numbers. bins: None for a step whose time is unknown. ends: where the next bin begins.

    versions_before: the sum of the versions of the weights of all steps before each.
    """

    bins: Sequence[int | None]
    ends: Sequence[int]
    versions_before: Sequence[int]


def _binned(served: ServedWeights, bins: Sequence[int | None]) -> _BinnedSteps:
    ends = list(range(1, len(bins) + 1))
    for step in range(len(bins) - 2, -1, -1):
        if bins[step] == bins[step + 1]:
            ends[step] = ends[step + 1]
    versions = (served.version_at(stamp) if math.isfinite(stamp) else 0 for stamp in served.steps.stamps)
    return _BinnedSteps(bins, ends, list(accumulate(versions, initial=0)))


def _lags(served: ServedWeights, own: Sequence[Process], steps: _BinnedSteps) -> Iterator[tuple[int, int, int]]:
    """Yield a bin, how many tokens of it a trainer scored, and the sum of the updates that had ended until then."""
    waiting: dict[bytes, list[_Sampled]] = {}
    for one in _sampled(served):
        waiting.setdefault(one.ids[:_FIRST], []).append(one)
    trainers = (token_records(process, ("trainer",)) for process in own if process.records.get("trainer"))
    for _, record in heapq.merge(*trainers, key=lambda line: line[1]["at"]):
        at = record["at"]
        version = served.version_at(at)
        # What is recomputed in the backward pass was looked at before.
        for row in () if record["backward"] else _rows(record):
            scored = _take(waiting, row, at)
            for first, count, each in () if scored is None else scored.steps:
                begin, upto = first, min(first + count, len(steps.bins))
                while begin < upto:
                    end, number = min(steps.ends[begin], upto), steps.bins[begin]
                    sampled_from = steps.versions_before[end] - steps.versions_before[begin]
                    if number is not None:
                        yield number, each * (end - begin), each * ((end - begin) * version - sampled_from)
                    begin = end


def _sampled(served: ServedWeights) -> Iterator[_Sampled]:
    held = 0
    for _, record in token_records(served.front, ("sequence",)):
        ids = _decoded(record["ids"])
        held += len(ids)
        if held > MOST_HELD_BYTES:
            return
        if ids and record["finish"] not in (None, "abort"):
            seen = len(ids) if record["visible"] is None else 4 * record["visible"]
            yield _Sampled(ids[:seen], record["at"], record["steps"])


def _rows(record: Mapping[str, object]) -> Iterator[bytes]:
    ids, shape = _decoded(str(record["ids"])), record["shape"]
    if isinstance(shape, list) and len(shape) == 2 and shape[1] and 4 * shape[0] * shape[1] == len(ids):
        ends = accumulate([4 * shape[1]] * shape[0])
        yield from (ids[end - 4 * shape[1] : end] for end in ends)


def _take(waiting: dict[bytes, list[_Sampled]], row: bytes, at: float) -> _Sampled | None:
    """Return the longest completion that begins a trainer's row, and had finished by then: each is taken once."""
    met = [
        one
        for length in (16, 12, 8, 4)
        for one in waiting.get(row[:length], ())
        if one.finished <= at and row.startswith(one.ids)
    ]
    longest = max(met, key=lambda one: len(one.ids), default=None)
    if longest is not None:
        waiting[longest.ids[:_FIRST]].remove(longest)
    return longest


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
