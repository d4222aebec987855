"""W&B: the folder of an offline run, or its `run-ID.wandb` file.

The file is a log of records in the format of LevelDB's write-ahead log (blocks of 32 KiB, records cut at their
edges, a CRC-32 over type and data), each record a protocol buffer of W&B's own. Only history records are read.
Source: wandb/sdk/internal/datastore.py and wandb/proto/wandb_internal.proto; tried on files of wandb 0.31.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlaudit.curves.protobuf_wire import BYTES, fields, signed
from rlaudit.curves.run_log import Problems, Row, RunReader
from rlaudit.errors import NotFinished
from rlaudit.files.parse_json import parse_json

MAGIC = b":W&B"
FILE_HEADER = struct.Struct("<4sHB")
RECORD_HEADER = struct.Struct("<IHB")
BLOCK = 32 * 1024
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
# Field numbers of wandb_internal.proto.
HISTORY, ITEM, STEP, STEP_NUMBER, KEY, NESTED_KEY, VALUE = 2, 1, 2, 1, 1, 2, 16


def recognises(path: Path, start: bytes) -> bool:
    """Return whether the file begins with the magic bytes of the format."""
    return start.startswith(MAGIC)


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield the history records. Raises NotFinished for a version of the format that is not known."""
    data = path.read_bytes()
    version = FILE_HEADER.unpack_from(data)[2] if len(data) >= FILE_HEADER.size else 0
    if version != 0:
        raise NotFinished(
            f"{path} is of version {version} of W&B's format, which is not known here",
            "export it: wandb sync it, then write run.scan_history() as JSON lines",
        )
    for number, record in enumerate(_records(data, problems), start=1):
        place = f"record {number}"
        try:
            for field, kind, value in fields(record):
                if field == HISTORY and kind == BYTES and isinstance(value, bytes):
                    yield _row(place, value)
        except ValueError as error:
            problems.add(place, f"not a protocol buffer: {error}")


def _records(data: bytes, problems: Problems) -> Iterator[bytes]:
    """Yield whole records; a broken one becomes a problem, and what follows it in its block is skipped."""
    place, parts = FILE_HEADER.size, bytearray()
    while place + RECORD_HEADER.size <= len(data):
        left = BLOCK - place % BLOCK
        if left < RECORD_HEADER.size:
            place += left
            continue
        checksum, length, kind = RECORD_HEADER.unpack_from(data, place)
        body = data[place + RECORD_HEADER.size : place + RECORD_HEADER.size + length]
        if len(body) < length:
            problems.add(f"byte {place}", "cut off in the middle, as an interrupted run leaves it")
            return
        if kind not in (FULL, FIRST, MIDDLE, LAST) or zlib.crc32(body, zlib.crc32(bytes([kind]))) != checksum:
            problems.add(f"byte {place}", "a record with a wrong checksum; the rest of its block is not used")
            parts.clear()
            place += left
            continue
        if kind in (FULL, FIRST):
            parts = bytearray()
        parts += body
        if kind in (FULL, LAST):
            yield bytes(parts)
        place += RECORD_HEADER.size + length


def _row(place: str, history: bytes) -> Row:
    step: int | None = None
    values: dict[str, Any] = {}
    for field, _, value in fields(history):
        if field == STEP and isinstance(value, bytes):
            # Step 0 is the default value of the field, which protocol buffers leave out.
            numbers = [number for inner, _, number in fields(value) if inner == STEP_NUMBER]
            step = signed(numbers[0]) if numbers and isinstance(numbers[0], int) else 0
        elif field == ITEM and isinstance(value, bytes):
            key, content = _item(value)
            values[key] = content
    return Row(place, values.get("_step", step), {key: value for key, value in values.items() if key[:1] != "_"})


def _item(item: bytes) -> tuple[str, Any]:
    names: list[str] = []
    content: Any = None
    for field, _, value in fields(item):
        if field in (KEY, NESTED_KEY) and isinstance(value, bytes):
            names.append(value.decode("utf-8", "replace"))
        elif field == VALUE and isinstance(value, bytes):
            content = parse_json(value)
    return ".".join(name for name in names if name), content


READER = RunReader(
    name="wandb-offline",
    title="W&B offline run",
    recognises=recognises,
    read=read,
    own_step="_step",
    files=("*.wandb",),
    rank=20,
)
