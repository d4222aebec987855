"""JSONL read line by line: what is not JSON is named with its line number, everything else is used."""

import gzip
import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from rlaudit.token_table.fault import Fault, Faults

LOOKED_AT = 5


def json_lines(path: Path, faults: Faults) -> Iterator[tuple[int, Any]]:
    """Line number (from 1) and value of every line that is JSON."""
    number = 0
    try:
        with opened(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    faults.add(Fault(path, _said(line, error), number), sequences=1)
    except (EOFError, OSError) as error:
        faults.add(Fault(path, f"cannot be read further: {error}", number + 1))


def first_values(path: Path) -> list[Any]:
    """The first few lines that are JSON; [] where there are none."""
    state = path.stat()
    return list(_first_values(path, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=4)
def _first_values(path: Path, size: int, changed: int) -> tuple[Any, ...]:
    try:
        return tuple(value for _, value in islice(json_lines(path, Faults()), LOOKED_AT))
    except (OSError, UnicodeDecodeError):
        return ()


def first_record(path: Path) -> dict[str, Any]:
    """The first line that is a JSON object; {} where the file does not begin with any."""
    if not is_json_lines(path):
        return {}
    return next((value for value in first_values(path) if isinstance(value, dict)), {})


def is_json_lines(path: Path) -> bool:
    """Whether the file is text that begins like JSON."""
    try:
        with opened(path) as file:
            return file.read(256).lstrip()[:1] in {b"{", b"["}
    except (OSError, EOFError):
        return False


def opened(path: Path) -> BinaryIO:
    """The file's bytes after a byte order mark, unpacked where it is gzip."""
    file = _unpacked(path)
    if file.read(len(BOM_UTF8)) != BOM_UTF8:
        file.seek(0)
    return file


def _unpacked(path: Path) -> BinaryIO:
    file = path.open("rb")
    if file.read(2) == b"\x1f\x8b":
        file.close()
        return gzip.open(path, "rb")  # type: ignore[return-value]
    file.seek(0)
    return file


def _said(line: bytes, error: Exception) -> str:
    if not line.endswith(b"\n"):
        return f"the last line is cut off after {len(line)} bytes: was the file still being written?"
    if line.strip(b"\x00\n") == b"":
        return "a line of NUL bytes: the file was written while the disk was full or unmounted"
    return f"not JSON ({error})"
