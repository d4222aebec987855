"""Curves as TensorBoard shows them and `wandb sync` uploads them: a folder per run, with one event file in it.

Source: tensorflow/core/util/event.proto, summary.proto; records as readers/tensorboard.py reads them.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlaudit.curves.curve import Run
from rlaudit.curves.protobuf_wire import BYTES, FIXED32, FIXED64, VARINT, field
from rlaudit.curves.readers.tensorboard import (
    CHECKSUM,
    EVENT_STEP,
    EVENT_SUMMARY,
    FILE_VERSION,
    LENGTH,
    SIMPLE_VALUE,
    TAG,
    VALUES,
    masked_crc32c,
)
from rlaudit.write_atomically import write_atomically

WALL_TIME, VERSION_TEXT = 1, 3
NAME = "events.out.tfevents.0.rlaudit"


def write_event_files(folder: Path, runs: Iterable[Run]) -> list[Path]:
    """One event file for each run, in a folder that has its name. Raises OSError where they cannot be written."""
    written = []
    for number, run in enumerate(runs, 1):
        path = folder / f"{number}-{re.sub(r'[^A-Za-z0-9._-]+', '-', run.name).strip('-.')}" / NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, b"".join(map(_record, _events(run))))
        written.append(path)
    return written


def _events(run: Run) -> Iterator[bytes]:
    yield _timed(0) + field(VERSION_TEXT, BYTES, FILE_VERSION + b"2")
    by_step: dict[int, list[bytes]] = {}
    for curve in run.curves.values():
        for step, value in zip(curve.steps.tolist(), curve.values.tolist(), strict=True):
            shown = field(TAG, BYTES, curve.key.encode()) + field(SIMPLE_VALUE, FIXED32, struct.pack("<f", value))
            by_step.setdefault(step, []).append(field(VALUES, BYTES, shown))
    for step, values in sorted(by_step.items()):
        yield _timed(step) + field(EVENT_STEP, VARINT, step) + field(EVENT_SUMMARY, BYTES, b"".join(values))


def _timed(step: int) -> bytes:
    """A second for each step: curves do not say when they were logged."""
    return field(WALL_TIME, FIXED64, struct.pack("<d", step))


def _record(data: bytes) -> bytes:
    length = LENGTH.pack(len(data))
    return length + CHECKSUM.pack(masked_crc32c(length)) + data + CHECKSUM.pack(masked_crc32c(data))
