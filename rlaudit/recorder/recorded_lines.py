"""The lines of one file of a recording, checked: a line that cannot be used is named, and nothing stops at it.

What a line holds stands in `shipped/rlaudit_recorder.py`. A recording is read after a SIGKILL, from a disk that was
full, or while it is still being written, so anything may be cut off; and it may come from elsewhere, so anything may be
in it.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from rlaudit.parse_json import parse_json

SCHEMA_NAME, SCHEMA_VERSION = "rlaudit-recording", "1"
# The first line says at its beginning what it is; behind that come arguments and environment of any length.
BEGINNING = 4096
# Rows of a trainer's call: 512 completions of 32,768 tokens take 180 MB.
LONGEST_LINE = 256 << 20
# Numbers that other programs can hold; the recorder counts nothing beyond.
MOST = 1 << 62


@dataclass
class Damage:
    """What is wrong with a file: each kind once, with the first line and how often it was met."""

    name: str
    met: dict[str, tuple[int | None, int]] = field(default_factory=dict)

    def add(self, what: str, line: int | None = None) -> None:
        """Note it. line: from 1."""
        first, count = self.met.get(what, (line, 0))
        self.met[what] = (first, count + 1)

    def counted(self) -> tuple[tuple[str, int], ...]:
        """Return one sentence for each kind, and how often it was met."""
        return tuple(
            (
                f"{self.name}{'' if line is None else f':{line}'}: {what}"
                f"{f' (and {count - 1} more)' if count > 1 else ''}",
                count,
            )
            for what, (line, count) in self.met.items()
        )

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for each kind."""
        return tuple(sentence for sentence, _ in self.counted())


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST


def _count(value: Any) -> bool:
    return _whole(value) and value >= 0


def _clock(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _by_text(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(of(one) for one in value.values())


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(_count(one) for one in value)


def _shapes(value: Any) -> bool:
    return isinstance(value, list) and all(_counts(one) for one in value)


def _steps(value: Any) -> bool:
    return _shapes(value) and all(len(one) == 3 and min(one[1:]) > 0 for one in value)


def _array(size: int) -> Callable[[Any], bool]:
    """Return the check of base64 of numbers of so many bytes, by its length; decoding checks the rest."""

    def fits(value: Any) -> bool:
        if not isinstance(value, str) or len(value) % 4:
            return False
        return (len(value) // 4 * 3 - (len(value) - len(value.rstrip("=")))) % size == 0

    return fits


IDS, LOGPROBS, STAMPS = _array(4), _array(4), _array(8)


@dataclass(frozen=True)
class Field:
    """What a field has to be. needed: without it the line says nothing; else `otherwise` stands for it.

    open: it may be null.
    """

    fits: Callable[[Any], bool]
    needed: bool = False
    open: bool = False
    otherwise: Any = None


def _must(fits: Callable[[Any], bool]) -> Field:
    return Field(fits, needed=True)


def _may(fits: Callable[[Any], bool], otherwise: Any = None) -> Field:
    return Field(fits, open=otherwise is None, otherwise=otherwise)


def _anything(value: Any) -> bool:
    return True


FIELDS: Mapping[str, Mapping[str, Field]] = {
    "process": {
        "at": _must(_clock),
        "schema": _must(_text),
        "host": _may(_text, ""),
        "boot": _may(_text),
        "pid": _must(_whole),
        "parent": _may(_whole),
        "name": _may(_text),
        "wall": _may(_clock),
        "argv": _may(_texts, []),
        "executable": _may(_text),
        "python": _may(_text),
        "versions": _may(_by_text(_text), {}),
        "environment": _may(_by_text(_text), {}),
        "settings": _may(_mapping, {}),
        "key": _may(_text),
    },
    "hooks": {"hooked": _may(_texts, [])},
    "engine": {
        "at": _must(_clock),
        "number": _must(_whole),
        "class": _may(_text),
        "written": _may(_mapping, {}),
        "effective": _may(_mapping),
        "error": _may(_text),
    },
    "worker": {
        "at": _must(_clock),
        "class": _may(_text),
        "rank": _may(_whole),
        "device": _may(_text),
        "capability": _may(_counts),
        "instance": _may(_text),
    },
    "model": {
        "at": _must(_clock),
        "class": _may(_text),
        "tensors": _may(_count),
        "dtypes": _may(_by_text(_count), {}),
        "parameters": _may(_count),
    },
    "sampling": {"sampling": _must(_count), "parameters": _must(_mapping)},
    "prompt": {"prompt": _must(_text), "ids": _must(IDS)},
    "request": {
        "at": _must(_clock),
        "request": _must(_text),
        "prompt": _must(_text),
        "sampling": _may(_count),
        "parent": _may(_text),
        "index": _may(_count),
        "parts": _may(_text),
        "salted": _may(_flag),
        "lora": _may(_text),
        "seed": _may(_whole),
        "engine": _may(_count),
    },
    "sequence": {
        "at": _must(_clock),
        "request": _must(_text),
        "prompt": _must(_text),
        "index": _may(_count),
        "ids": _must(IDS),
        "logprobs": _may(LOGPROBS),
        "steps": _must(_steps),
        "cached": _may(_count),
        "finish": _may(_text),
        "stop": _may(_anything),
        "visible": _may(_count),
        "resumed": _may(_flag),
        "engine": _may(_count),
    },
    "steps": {
        "at": _may(_clock),
        "first": _must(_count),
        "stamps": _must(STAMPS),
        "tokens": _must(IDS),
        "cached": _must(IDS),
        "engines": _may(IDS),
    },
    "event": {
        "at": _must(_clock),
        "call": _must(_whole),
        "what": _must(_text),
        "side": _must(_text),
        "arguments": _may(_mapping, {}),
        "in_flight": _may(_count),
        "engine": _may(_count),
        "result": _may(_anything),
        "error": _may(_text),
    },
    "repeats": {"call": _must(_whole), "count": _must(_count), "end": _must(_clock), "errors": _may(_count, 0)},
    "tensors": {
        "tensors": _must(_whole),
        "names": _must(_texts),
        "dtypes": _may(_texts, []),
        "shapes": _may(_shapes, []),
    },
    "load": {
        "at": _must(_clock),
        "load": _must(_whole),
        "side": _must(_text),
        "inside": _may(_whole),
        "names": _may(_texts, []),
        "in_flight": _may(_count),
        "tensors": _may(_whole),
        "calls": _may(_count),
        "begin": _may(_clock),
        "end": _may(_clock),
        "error": _may(_text),
    },
    "weights": {
        "at": _must(_clock),
        "load": _may(_whole),
        "tensors": _must(_whole),
        "values": _must(LOGPROBS),
        "sent": _may(_whole),
        "values_sent": _may(LOGPROBS),
        "values_rounded": _may(LOGPROBS),
        "values_held": _may(LOGPROBS),
    },
    "trainer": {
        "at": _must(_clock),
        "call": _may(_whole),
        "function": _may(_text),
        "gradients": _must(_flag),
        "backward": _must(_flag),
        "asked_for": _may(_text),
        "model": _may(_mapping),
        "rows": _must(_counts),
        "begins": _must(_counts),
        "lengths": _must(_counts),
        "ids": _must(IDS),
        "logprobs": _must(LOGPROBS),
    },
    "totals": {
        "at": _must(_clock),
        "requests": _may(_count),
        "sequences": _may(_count),
        "tokens": _may(_count),
        "cached": _may(_count),
        "aborted": _may(_count),
        "kept_sequences": _may(_count),
        "kept_tokens": _may(_count),
        "by_sampling": _may(_by_text(_count), {}),
        "ended": _may(_flag, False),
    },
    "child": {"at": _must(_clock), "pid": _must(_whole), "name": _may(_text), "code": _must(_whole)},
    "failed": {"hook": _may(_text, "?"), "error": _may(_text, "?")},
    "dropped": {"what": _may(_text, "?"), "why": _may(_text, "?")},
}


def _ended(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and _count(one[0]) and _text(one[1]) for one in value
    )


# The blocks of a ring (`shipped/rlaudit_ring.py`) are checked alike; so are the calls in it, which are lines as well.
RING_FIELDS: Mapping[str, Mapping[str, Field]] = {
    "ring": {"at": _must(_clock), "missed": _may(_count, 0), "left_out": _may(_count, 0)},
    "prompt": {"prompt": _must(_count), "length": _must(_count)},
    "request": {
        "at": _must(_clock),
        "number": _must(_count),
        "engine": _may(_count),
        "request": _must(_text),
        "parent": _may(_text),
        "lora": _may(_text),
        "prompt": _may(_count),
        "sampling": _may(_count),
        "index": _may(_count),
    },
    "step": {
        "at": _must(_clock),
        "step": _must(_count),
        "engine": _may(_count),
        "cached": _may(_count),
        "ended": _may(_ended, []),
    },
    "gone": {"at": _must(_clock), "numbers": _must(_counts), "finish": _may(_text)},
    "batch": {"at": _must(_clock), "batch": _must(_count)},
    "computed": {"at": _must(_clock), "batch": _must(_count), "error": _may(_text)},
    "left": {"at": _must(_clock), "requests": _must(_count), "computing": _may(_flag, False)},
    **{kind: FIELDS[kind] for kind in ("event", "repeats", "load", "failed", "dropped", "sampling")},
}


def checked(
    record: dict[str, Any], line: int, damage: Damage, fields: Mapping[str, Mapping[str, Field]] = FIELDS
) -> dict[str, Any] | None:
    """Return the record with every field of its kind as it has to be; None if it cannot be used.

    A field that is not as it has to be is replaced and named. An unknown kind is named.
    """
    kind = record.get("kind")
    shape = fields.get(kind) if isinstance(kind, str) else None
    if shape is None:
        damage.add(f"a record of the unknown kind {str(kind)[:40]!r} is left out", line)
        return None
    whole = dict(record)
    for name, one in shape.items():
        value = record.get(name)
        if (value is None and (one.open or (name not in record and not one.needed))) or (
            value is not None and one.fits(value)
        ):
            whole[name] = one.otherwise if value is None else value
            continue
        fault = f"no {name}" if name not in record else f"a {name} that is none"
        if one.needed:
            damage.add(f"a {kind} record with {fault} is left out", line)
            return None
        damage.add(f"a {kind} record has {fault}, which counts as unknown", line)
        whole[name] = one.otherwise
    if kind in ("event", "load") and whole["side"] not in ("begin", "end"):
        damage.add(f"a {kind} record with a side that is neither begin nor end is left out", line)
        return None
    return whole


def is_first_line(line: bytes) -> bool:
    """Return whether a line begins a file of a recording, of any version."""
    if SCHEMA_NAME.encode() not in line[:BEGINNING]:
        return False
    try:
        record = parse_json(line)
    except ValueError:
        return False
    schema = record.get("schema") if isinstance(record, dict) else None
    return isinstance(schema, str) and record.get("kind") == "process" and schema.partition("/")[0] == SCHEMA_NAME


def first_line(path: Path) -> bytes:
    """Return the first line of a regular file; b"" if that is no line of a recording. Raises OSError, ValueError."""
    with opened(path) as file:
        head = file.read(BEGINNING) or b""  # None: a file that would be waited for (/proc/kmsg)
        return (
            head + file.readline(LONGEST_LINE)
            if SCHEMA_NAME.encode() in head and b"\n" not in head
            else (head.partition(b"\n")[0])
        )


def opened(path: Path) -> BinaryIO:
    """Open a regular file without ever waiting. Raises OSError; ValueError for a pipe, a device or a folder."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("not a regular file")
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def recorded_lines(path: Path, damage: Damage) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number (from 1) and record of each line that can be used. Raises nothing for what a file may hold."""
    number = 0
    try:
        with opened(path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    damage.add(f"a line of more than {LONGEST_LINE >> 20} MiB is left out", number)
                    while line and not line.endswith(b"\n"):
                        line = file.readline(LONGEST_LINE)
                    continue
                if not line.strip():
                    continue
                record = _parsed(line)
                if record is None:
                    cut = "a line that is cut off is left out"
                    damage.add(cut if not line.endswith(b"\n") else "a line that is no JSON object is left out", number)
                    continue
                whole = checked(record, number, damage)
                if whole is not None:
                    yield number, whole
    except (OSError, ValueError) as error:
        damage.add(f"cannot be read from here on: {error}", number + 1)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = parse_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
