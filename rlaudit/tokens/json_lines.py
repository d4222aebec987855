"""JSONL read line by line: what is not JSON is named with its line number, everything else is used."""

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from rlaudit.files.parse_json import parse_json
from rlaudit.files.remote_log import is_remote, opened_log
from rlaudit.tokens.fault import Fault, FaultKind, Faults

LOOKED_AT = 5
# A group of 64 completions of 32,768 tokens, with ids and logprobs as PipelineRL writes them, takes 60 MB.
LONGEST_LINE = 64 << 20
# Values and lists of one line. Of the shortest ones that JSON can write Python makes up to 120 bytes each.
MOST_VALUES = 6_000_000
# What is raised for a file that is damaged, ends too early, or cannot be read.
BROKEN = (EOFError, OSError, zlib.error, pa.ArrowException)
# A whole number beyond this would be a rounded float: a prompt may be called by a hash of 128 bits.
EXACT = 2.0**63
# How packed files begin.
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def json_lines(path: Path, faults: Faults) -> Iterator[tuple[int, Any]]:
    """Yield line number (from 1) and value of every line that is JSON. A line beyond the bounds ends the file."""
    number = 0
    try:
        with opened(path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if not line.strip():
                    continue
                too_long = _too_long(line)
                if too_long:
                    faults.add(Fault(path, FaultKind.UNREAD, f"{too_long}; it is read up to there", number), 1)
                    return
                try:
                    value = parsed(line)
                except ValueError as error:
                    kind = FaultKind.NOT_JSON if line.endswith(b"\n") else FaultKind.CUT_OFF
                    faults.add(Fault(path, kind, _why_not_json(line, error), number), sequences=1)
                    continue
                yield number, value
    except BROKEN as error:
        faults.add(Fault(path, FaultKind.UNREAD, f"cannot be read further: {error}", number + 1))


def parsed(line: bytes) -> Any:
    """Return a line as `json.loads` has it, three times as fast: that gets what the faster parser refuses or rounds.

    Raises ValueError for what is not JSON.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        # NaN and infinities, which Python writes, or what is no JSON: in the words of the standard library.
        return parse_json(line)
    records = value if isinstance(value, list) else (value,)
    fields = (field for record in records if isinstance(record, dict) for field in record.values())
    return parse_json(line) if any(type(field) is float and abs(field) >= EXACT for field in fields) else value


def first_values(path: Path) -> tuple[Any, ...]:
    """Return the first few lines that are JSON; none if the file does not begin with any."""
    state = None if is_remote(path) else path.stat()
    return _first_values(path, state and (state.st_size, state.st_mtime_ns))


# All formats look at the same file before the next one is opened.
@lru_cache(maxsize=1)
def _first_values(path: Path, version: tuple[int, int] | None) -> tuple[Any, ...]:
    values = []
    for line, value in json_lines(path, Faults()):
        values.append(value)
        # The first object or list shows the format.
        if isinstance(value, dict | list) or line >= LOOKED_AT:
            break
    return tuple(values)


def forget_first_values() -> None:
    """Give back the memory of the lines looked at last."""
    _first_values.cache_clear()


def first_record(path: Path) -> dict[str, Any]:
    """Return the first line that is a JSON object; {} if the file does not begin with any."""
    if not is_json_lines(path):
        return {}
    return next((value for value in first_values(path) if isinstance(value, dict)), {})


def is_json_lines(path: Path) -> bool:
    """Return whether the file is text that begins like JSON."""
    try:
        return beginning(path).lstrip()[:1] in {b"{", b"["}
    except BROKEN:
        return False


def beginning(path: Path) -> bytes:
    """Return the first bytes, unpacked. Raises one of BROKEN."""
    with opened(path) as file:
        return file.read(256)


def opened(path: Path) -> BufferedReader:
    """Return the file's bytes after a byte order mark, unpacked if it is gzip or Zstandard. Raises one of BROKEN."""
    file = _decompressed(path)
    try:
        if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            file.read(len(BOM_UTF8))
    except BROKEN:
        file.close()
        raise
    return file


def _decompressed(path: Path) -> BufferedReader:
    file = opened_log(path)
    start = file.peek(len(ZSTANDARD))
    if start.startswith((GZIP, ZSTANDARD)):
        source: Any = file
        if not is_remote(path):
            file.close()
            source = str(path)
        return BufferedReader(
            gzip.open(source) if start.startswith(GZIP) else pa.input_stream(source, compression="zstd")
        )
    return file


def _too_long(line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        return f"a line of more than {LONGEST_LINE >> 20} MiB, expected one sequence or a group of them"
    # Only a line of MOST_VALUES bytes can hold as many.
    if len(line) > MOST_VALUES and sum(map(line.count, (b",", b"[", b"{"))) > MOST_VALUES:
        return f"a line of more than {MOST_VALUES} values, expected one sequence or a group of them"
    return ""


def _why_not_json(line: bytes, error: Exception) -> str:
    if not line.endswith(b"\n"):
        return f"the last line is cut off after {len(line)} bytes: was the file still being written?"
    if line.strip(b"\x00\n") == b"":
        return "a line of NUL bytes: the file was written while the disk was full or unmounted"
    return f"not JSON ({error})"
