"""The lines of one file of a recording, checked: a line that cannot be used is named, and nothing stops at it.

What a line holds stands in `shipped/rlaudit_recorder.py`, what each field has to be in `recorded_lines.yaml`. A
recording is read after a SIGKILL, from a disk that was full, or while it is still being written, so anything may be cut
off; and it may come from elsewhere, so anything may be in it.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from rlaudit.files.parse_json import parse_json
from rlaudit.files.read_regular import open_regular
from rlaudit.recording.encoded_numbers import float32s, stamps, whole_numbers

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
        """Note one damage. line: from 1."""
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


def _whole(value: Any) -> bool:
    return type(value) is int and -MOST < value < MOST


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST


def _clock(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _table_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _is_a(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _step(value: Any) -> bool:
    return _COUNTS(value) and len(value) == 3 and min(value[1:]) > 0


_COUNTS = _list_of(_count)
# By their names in recorded_lines.yaml.
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "text": _is_a(str),
    "whole": _whole,
    "count": _count,
    "clock": _clock,
    "flag": _is_a(bool),
    "side": lambda value: value in ("begin", "end"),
    "mapping": _is_a(dict),
    "anything": lambda value: True,
    "texts": _list_of(_is_a(str)),
    "counts": _COUNTS,
    "shapes": _list_of(_COUNTS),
    "steps": _list_of(_step),
    "texts_by_name": _table_of(_is_a(str)),
    "counts_by_name": _table_of(_count),
}
# Arrays, decoded while their line is checked.
_ARRAYS: Mapping[str, Callable[[Any], "array[Any]"]] = {
    "ids": whole_numbers,
    "floats": float32s,
    "stamps": stamps,
}


@dataclass(frozen=True)
class Field:
    """What a field has to be."""

    # What is kept of its value. Raises ValueError for one that does not fit.
    kept: Callable[[Any], Any]
    # Without it the line says nothing; else `otherwise` stands for it.
    needed: bool = False
    otherwise: Any = None


Fields = Mapping[str, Mapping[str, Field]]


def _fields(kinds: Mapping[str, Any]) -> Fields:
    return {
        kind: {
            **{name: Field(_kept(check), needed=True) for name, check in spec.get("needed", {}).items()},
            **{name: Field(_kept(check)) for name, check in spec.get("optional", {}).items()},
            **{name: Field(_kept(check), False, value) for name, (check, value) in spec.get("otherwise", {}).items()},
        }
        for kind, spec in kinds.items()
    }


def _kept(check: str) -> Callable[[Any], Any]:
    return _ARRAYS[check] if check in _ARRAYS else partial(_if_it_fits, _CHECKS[check])


def _if_it_fits(fits: Callable[[Any], bool], value: Any) -> Any:
    if not fits(value):
        raise ValueError
    return value


_FORMAT: Mapping[str, Any] = yaml.load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
)
FIELDS = _fields(_FORMAT["lines"])


def checked(record: dict[str, Any], line: int, damage: Damage) -> dict[str, Any] | None:
    """Return the record with every field of its kind valid, and its arrays decoded; None if it cannot be used.

    An invalid field is replaced and named. An unknown kind is named.
    """
    kind = record.get("kind")
    shape = FIELDS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        damage.add(f"a record of the unknown kind {str(kind)[:40]!r} is left out", line)
        return None
    whole = dict(record)
    for name, rule in shape.items():
        value = record.get(name)
        if value is None and not rule.needed and (rule.otherwise is None or name not in record):
            whole[name] = rule.otherwise
            continue
        try:
            whole[name] = rule.kept(value)
        except ValueError:
            fault = f"no {name}" if name not in record else f"a {name} that is none"
            if rule.needed:
                damage.add(f"a {kind} record with {fault} is left out", line)
                return None
            damage.add(f"a {kind} record has {fault}, which counts as unknown", line)
            whole[name] = rule.otherwise
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
    with open_regular(path) as file:
        head = file.read(BEGINNING) or b""  # None: a file that would be waited for (/proc/kmsg)
        return (
            head + file.readline(LONGEST_LINE)
            if SCHEMA_NAME.encode() in head and b"\n" not in head
            else (head.partition(b"\n")[0])
        )


def recorded_lines(path: Path, damage: Damage) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number (from 1) and record of each line that can be used. Raises nothing for what a file may hold."""
    number = 0
    try:
        with open_regular(path) as file:
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
