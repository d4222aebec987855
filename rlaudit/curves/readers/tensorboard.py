"""TensorBoard: event files (`events.out.tfevents.*`), one or several of one run in a folder.

Records with two masked CRC-32Cs each, both checked; scalars written as `simple_value` or as a tensor of one number.
Histograms, images and text are passed over. NeMo-RL, OpenRLHF, AReaL, ROLL and SkyRL can log to it.
Source: tensorflow/core/util/event.proto, summary.proto, tensor.proto; tried on files of tensorboardX and tensorboard.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from google_crc32c import value as crc32c

from rlaudit.curves.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, fields, signed, varint
from rlaudit.curves.run_log import Problems, Row, RunReader

LENGTH = struct.Struct("<Q")
CHECKSUM = struct.Struct("<I")
MASK_DELTA = 0xA282EAD8
FILE_VERSION = b"brain.Event:"
# Field numbers: Event.step, Event.summary, Summary.value; Value.tag, .simple_value, .tensor; TensorProto.*.
EVENT_STEP, EVENT_SUMMARY, VALUES, TAG, SIMPLE_VALUE, TENSOR = 2, 5, 1, 1, 2, 8
DTYPE, CONTENT, FLOATS, DOUBLES, INTS, LONGS = 1, 4, 5, 6, 7, 10
DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}
PACKED = {FLOATS: "<f4", DOUBLES: "<f8"}


def recognises(path: Path, start: bytes) -> bool:
    """Return whether the first record names the file's version."""
    return FILE_VERSION in start[:64]


def read(path: Path, problems: Problems) -> Iterator[Row]:
    """Yield one row for each event with scalars in it."""
    for place, event in _records(path, problems):
        try:
            row = _row(place, event)
        except (ValueError, struct.error) as error:
            problems.add(place, f"not an event: {error}")
            continue
        if row.values:
            yield row


def _records(path: Path, problems: Problems) -> Iterator[tuple[str, bytes]]:
    """Yield the place of each record whose checksums are right, and its data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        number = 0
        while header := file.read(LENGTH.size + CHECKSUM.size):
            number += 1
            body = b""
            if len(header) == LENGTH.size + CHECKSUM.size:
                (length,) = LENGTH.unpack_from(header)
                if length > size:
                    # Without a length to trust there is no telling where the next record begins.
                    problems.add(f"record {number}", "a broken length; nothing behind it is used")
                    return
                body = file.read(length + CHECKSUM.size)
            if len(header) < LENGTH.size + CHECKSUM.size or len(body) < length + CHECKSUM.size:
                problems.add(f"record {number}", "cut off in the middle, as an interrupted run leaves it")
                return
            data = body[:length]
            checksums = (masked_crc32c(header[: LENGTH.size]), masked_crc32c(data))
            if checksums == (*CHECKSUM.unpack_from(header, LENGTH.size), *CHECKSUM.unpack_from(body, length)):
                yield f"record {number}", data
            else:
                problems.add(f"record {number}", "a wrong checksum; the record is not used")


def masked_crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli), rotated and shifted as TFRecord files store it."""
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF


def _row(place: str, event: bytes) -> Row:
    step, values = 0, {}
    for number, kind, content in fields(event):
        if number == EVENT_STEP and kind == VARINT and isinstance(content, int):
            step = signed(content)
        elif number == EVENT_SUMMARY and isinstance(content, bytes):
            for inner, _, value in fields(content):
                if inner == VALUES and isinstance(value, bytes):
                    values.update(_scalar(value))
    return Row(place, step, values)


def _scalar(value: bytes) -> dict[str, float]:
    tag, number = "", None
    for field, kind, content in fields(value):
        if field == TAG and isinstance(content, bytes):
            tag = content.decode("utf-8", "replace")
        elif field == SIMPLE_VALUE and kind == FIXED32 and isinstance(content, bytes):
            number = float(np.frombuffer(content, "<f4")[0])
        elif field == TENSOR and isinstance(content, bytes):
            number = _tensor(content)
    return {} if number is None else {tag: number}


def _tensor(tensor: bytes) -> float | None:
    """Return the number in a tensor of one number; None for any other tensor."""
    dtype, numbers = 0, np.empty(0)
    packed = b""
    for field, kind, content in fields(tensor):
        if field == DTYPE and isinstance(content, int):
            dtype = content
        elif field == CONTENT and isinstance(content, bytes):
            packed = content
        elif field in PACKED and kind in (BYTES, FIXED32, FIXED64) and isinstance(content, bytes):
            numbers = np.frombuffer(content, PACKED[field])
        elif field in (INTS, LONGS):
            whole = content if isinstance(content, int) else _only_varint(content)
            numbers = numbers if whole is None else np.array([signed(whole)])
    if packed and dtype in DTYPES and len(packed) % np.dtype(DTYPES[dtype]).itemsize == 0:
        numbers = np.frombuffer(packed, DTYPES[dtype])
    return float(numbers[0]) if numbers.size == 1 else None


def _only_varint(packed: bytes) -> int | None:
    number, end = varint(packed, 0)
    return number if end == len(packed) else None


READER = RunReader(
    name="tensorboard",
    title="TensorBoard event files",
    recognises=recognises,
    read=read,
    own_step="step",
    files=("*tfevents*",),
    joins=True,
    rank=40,
)
