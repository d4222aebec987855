"""Prompts numbered once for a whole file, in fixed memory: from PROMPTS on, prompts are put into random groups.

Intervals resample prompts. Groups of prompts are independent of each other as prompts are, so resampling groups is as
valid; 4,096 of them are more than an interval needs, while a number for every prompt of a month of training would be
memory that grows with the file.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from rlaudit.arrays import Integers

PROMPTS = 4096


class PromptNumbers:
    """Numbers 0..PROMPTS-1: one for each of the first prompts, the group of its name for every later one.

    apart: groups are numbered from PROMPTS on. So a file's sums of single prompts stay distinct from those of groups
    when files are put together (`ours`).
    """

    def __init__(self, apart: bool = False) -> None:
        self._numbers: dict[Any, int] = {}
        self._apart = PROMPTS if apart else 0
        self.grouped = False

    def of(self, names: Iterable[Any]) -> Integers:
        """Return the numbers of these prompts; the same name always has the same number."""
        # Samples of one prompt mostly lie together.
        number_of = lru_cache(self._number)
        return np.fromiter(map(number_of, names), dtype=np.int64)

    @property
    def names(self) -> tuple[Any, ...]:
        """The prompts that are in no group, in the order of their numbers."""
        return tuple(self._numbers)

    def ours(self, names: Sequence[Any], grouped: bool) -> Integers:
        """Return (2 PROMPTS,) our number for each that a file gave `apart`. names: of its prompts outside groups.

        In a file of more than PROMPTS prompts, one that comes late is in its group, even if another file numbers it.
        """
        numbered = self.of(names)
        self.grouped = self.grouped or grouped
        return np.concatenate([numbered, np.zeros(PROMPTS - numbered.size, dtype=np.int64), np.arange(PROMPTS)])

    def note(self) -> str:
        """Return what a reader of the intervals must know; "" where every prompt has its own number."""
        if not self.grouped:
            return ""
        return f"more than {PROMPTS} prompts: intervals resample {PROMPTS} random groups of them"

    def _number(self, name: Any) -> int:
        number = self._numbers.get(name)
        if number is not None:
            return number
        if len(self._numbers) < PROMPTS:
            return self._numbers.setdefault(name, len(self._numbers))
        self.grouped = True
        return self._apart + crc32(str(name).encode()) % PROMPTS
