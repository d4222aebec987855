"""The last steps before a process died: what its ring holds, of all requests, kept or not.

A ring lies beside the file of its process, and is removed at an orderly end with nothing in flight. It is read as it
lies, also while it is being written: a block that is not whole ends a half. Its format stands in
`shipped/rlaudit_ring.py`. Standard library only.
"""

import struct
import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlaudit.parse_json import parse_json
from rlaudit.recorder.arrays import numbers_of
from rlaudit.recorder.recorded_lines import RING_FIELDS, Damage, checked, opened
from rlaudit.recorder.recorded_process import Process

ENDING = ".ring"
# A ring of 16 MB is read whole; one of a stranger's is read so far.
MOST_BYTES = 1 << 30
_SCHEMA, _BEGINNING = "rlaudit-ring/1", 24
_HEAD = struct.Struct("<IIQ")
_CRC = struct.Struct("<I")
_REQUEST = ("number", "at", "request", "engine", "parent", "lora", "prompt", "sampling", "index")
# What a block's arrays have to be, in the order in which they may come.
_ARRAYS = {"prompt": {"ids": "i"}, "batch": {"numbers": "i", "tokens": "i"}}
_ARRAYS["step"] = {"numbers": "i", "ids": "i", "counts": "i", "logprobs": "f"}


@dataclass(frozen=True)
class RingRequest:
    """A request by its number. engine: number; None: as a worker knows it, which then has its name alone.

    length: of the prompt; None if unknown. ids: of the prompt; None if the ring had no room for them.
    """

    engine: int | None
    name: str
    length: int | None
    ids: "array[int] | None"


@dataclass(frozen=True)
class LastStep:
    """A step as its front end saw it. requests: by number, 0 for one that the ring does not know.

    step: its number. V0 stamps no step: what came within a millisecond is one. counts: tokens of each request.
    ids, logprobs: of all its tokens in that order. Logprobs are in nats, NaN for one that was not returned; None if
    none was, or if the ring left them out for want of time. cached: prompt tokens from the prefix cache, None if
    unknown.
    """

    step: int
    at: float
    requests: "array[int]"
    counts: "array[int]"
    ids: "array[int]"
    logprobs: "array[float] | None"
    cached: int | None
    ended: Mapping[int, str]


@dataclass(frozen=True)
class Batch:
    """What a worker began to compute. tokens: of each request. returned: when the call had; None if it had not."""

    batch: int
    at: float
    requests: "array[int]"
    tokens: "array[int]"
    returned: float | None
    error: str | None


@dataclass(frozen=True)
class LastSteps:
    """The ring of one process. requests: by number. in_flight: those of its front end that had not ended.

    calls: records of the recording, in order. left: whether the process ended in order, with this in flight. missed:
    records that were not written. lost: what cannot be read, in sentences.
    """

    process: Process
    file: Path
    steps: tuple[LastStep, ...]
    batches: tuple[Batch, ...]
    requests: Mapping[int, RingRequest]
    in_flight: tuple[RingRequest, ...]
    calls: tuple[Mapping[str, Any], ...]
    left: bool
    missed: int
    lost: tuple[str, ...]

    @property
    def computing(self) -> Batch | None:
        """The batch that had not returned; None if there was none."""
        last = self.batches[-1] if self.batches else None
        return last if last is not None and (last.returned is None or last.error is not None) else None

    @property
    def at(self) -> float | None:
        """The clock of the last thing in it."""
        clocks = [step.at for step in self.steps[-1:]] + [batch.returned or batch.at for batch in self.batches[-1:]]
        return max(clocks, default=None)


def last_steps(process: Process) -> LastSteps | None:
    """Return what the ring of a process holds; None if it has none. Raises nothing for what a file may hold."""
    file = process.file.with_suffix(ENDING)
    damage = Damage(file.name)
    try:
        with opened(file) as ring:
            data = ring.read(MOST_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        damage.add(f"cannot be read: {error}")
        data = b""
    return _Reader(damage).read(process, file, data)


class _Reader:
    def __init__(self, damage: Damage) -> None:
        self.damage = damage
        self.steps: list[LastStep] = []
        self.batches: dict[int, Batch] = {}
        self.prompts: dict[int, tuple[int, array[int] | None]] = {}
        self.requests: dict[int, dict[str, Any]] = {}
        self.over: set[int] = set()
        self.calls: list[Mapping[str, Any]] = []
        self.left = False
        self.missed = 0

    def read(self, process: Process, file: Path, data: bytes) -> LastSteps:
        for number, record, arrays in _blocks(data, self.damage):
            for part in self._each(number, record):
                whole = checked(part, number, self.damage, RING_FIELDS)
                if whole is not None:
                    self._take(number, whole, arrays)
        unknown = None, None
        requests = {
            number: RingRequest(record["engine"], record["request"], *self.prompts.get(record["prompt"], unknown))
            for number, record in self.requests.items()
        }
        unfinished = (
            request for number, request in requests.items() if number not in self.over and request.engine is not None
        )
        return LastSteps(
            process,
            file,
            tuple(self.steps),
            tuple(self.batches.values()),
            requests,
            tuple(unfinished),
            tuple(self.calls),
            self.left,
            self.missed,
            self.damage.sentences(),
        )

    def _each(self, number: int, record: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield a record, or the requests that it holds."""
        rows = record.get("requests") if record.get("kind") == "requests" else None
        if not isinstance(rows, list):
            yield record
            return
        for row in rows:
            if isinstance(row, list) and len(row) == len(_REQUEST):
                yield {"kind": "request", **dict(zip(_REQUEST, row, strict=True))}
            else:
                self.damage.add("a request that is no row is left out", number)

    def _take(self, number: int, record: dict[str, Any], arrays: dict[str, "array[Any]"]) -> None:
        kind = record["kind"]
        if kind == "ring":
            self.missed = max(self.missed, record["missed"])
        elif kind == "prompt":
            self.prompts[record["prompt"]] = (record["length"], arrays.get("ids"))
        elif kind == "request":
            self.requests[record["number"]] = record
        elif kind == "step":
            self._step(number, record, arrays)
        elif kind == "gone":
            self.over.update(record["numbers"])
        elif kind == "batch":
            requests, tokens = arrays.get("numbers", array("i")), arrays.get("tokens", array("i"))
            if len(requests) != len(tokens):
                self.damage.add("a batch whose arrays do not fit is left out", number)
                return
            self.batches[record["batch"]] = Batch(record["batch"], record["at"], requests, tokens, None, None)
        elif kind == "computed":
            begun = self.batches.get(record["batch"])
            if begun is not None:
                self.batches[begun.batch] = replace(begun, returned=record["at"], error=record["error"])
        elif kind == "left":
            self.left = True
        else:
            self.calls.append(record)

    def _step(self, number: int, record: dict[str, Any], arrays: dict[str, "array[Any]"]) -> None:
        requests, ids = arrays.get("numbers", array("i")), arrays.get("ids", array("i"))
        counts, logprobs = arrays.get("counts", array("i", [1]) * len(requests)), arrays.get("logprobs")
        fits = len(counts) == len(requests) and min(counts, default=0) >= 0 and sum(counts) == len(ids)
        if not fits or (logprobs is not None and len(logprobs) != len(ids)):
            self.damage.add("a step whose arrays do not fit is left out", number)
            return
        ended = dict(record["ended"])
        self.over.update(ended)
        arrays_of_step = (requests, counts, ids, logprobs, record["cached"], ended)
        self.steps.append(LastStep(record["step"], record["at"], *arrays_of_step))


def _blocks(data: bytes, damage: Damage) -> Iterator[tuple[int, dict[str, Any], dict[str, "array[Any]"]]]:
    """Yield number, object and arrays of each block, oldest first."""
    if len(data) < _BEGINNING:
        damage.add("its beginning is missing")
        return
    schema, size = struct.unpack_from("<16sQ", data)
    if schema.rstrip(b"\0") != _SCHEMA.encode():
        damage.add(f"its schema is {schema.rstrip(bytes(1))!r}, and {_SCHEMA} is read here")
        return
    halves = []
    for begin in (_BEGINNING, _BEGINNING + size):
        half = list(_half(data[begin : begin + size]))
        if half:
            halves.append(half)
    for half in sorted(halves, key=lambda blocks: blocks[0][0]):
        for number, text, body in half:
            record, arrays = _decoded(text, body)
            if record is None:
                damage.add("a block that is no record is left out", number)
            else:
                yield number, record, arrays


def _half(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield number, object and arrays of the blocks of a half, to the first that is not whole or not the next one."""
    at, before = 0, None
    while at + _HEAD.size + _CRC.size <= len(data):
        length, text, number = _HEAD.unpack_from(data, at)
        begin = at + _HEAD.size + _CRC.size
        body = data[begin : begin + length]
        whole = zlib.crc32(body, zlib.crc32(data[at : at + _HEAD.size])) == _CRC.unpack_from(data, at + _HEAD.size)[0]
        if not whole or len(body) < length or text > length or (before is not None and number != before + 1):
            return
        yield number, body[:text], body[text:]
        at, before = begin + length, number


def _decoded(text: bytes, body: bytes) -> tuple[dict[str, Any] | None, dict[str, "array[Any]"]]:
    try:
        record = parse_json(text)
    except ValueError:
        return None, {}
    if not isinstance(record, dict):
        return None, {}
    arrays: dict[str, array[Any]] = {}
    at = 0
    may_have, declared = _ARRAYS.get(str(record.get("kind")), {}), record.get("arrays", [])
    for entry in declared if isinstance(declared, list) else ():
        name, code, count = entry if isinstance(entry, list) and len(entry) == 3 else ("", "", 0)
        fits = isinstance(name, str) and isinstance(count, int) and 0 <= count <= (len(body) - at) // 4
        if not fits or may_have.get(name) != code:
            return None, {}
        arrays[name] = numbers_of(body[at : at + 4 * count], code)
        at += 4 * count
    return record, arrays
