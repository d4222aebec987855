"""An array of a recording, on the disk until it is read: a training's tokens fill no memory.

The disk is a file without a name where temporary files lie; without room there, arrays stay in memory.
"""

import os
import weakref
from array import array
from contextlib import suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """An array. held: as long as there is no room for it on the disk."""

    store: "Columns"
    code: str
    # Its place among all numbers of the store, in bytes.
    at: int
    count: int
    held: "array[Any] | None" = None

    def __len__(self) -> int:
        return self.count

    def read(self) -> "array[Any]":
        """Return the numbers."""
        if self.held is not None:
            return self.held
        numbers = array(self.code)
        numbers.frombytes(self.store.read(self.at, self.count * numbers.itemsize))
        return numbers

    def part(self, first: int, count: int) -> "Column":
        """Return some of the numbers, from a place on."""
        if self.held is not None:
            return replace(self, count=count, held=self.held[first : first + count])
        return replace(self, at=self.at + first * array(self.code).itemsize, count=count)


class Columns:
    """The arrays of one recording."""

    def __init__(self) -> None:
        self._file: Any = None
        self._size = 0
        with suppress(OSError):
            self._file = TemporaryFile(prefix="rlaudit-", buffering=0)  # noqa: SIM115 - as long as a column may be read
            weakref.finalize(self, self._file.close)

    def keep(self, numbers: "array[Any]") -> Column:
        """Put an array on the disk."""
        at, data = self._size, numbers.tobytes()
        with suppress(OSError):
            if self._file is not None and os.pwrite(self._file.fileno(), data, at) == len(data):
                self._size += len(data)
                return Column(self, numbers.typecode, at, len(numbers))
        return Column(self, numbers.typecode, at, len(numbers), numbers)

    def read(self, at: int, size: int) -> bytes:
        """Return so many bytes from a place on."""
        return os.pread(self._file.fileno(), size, at)
