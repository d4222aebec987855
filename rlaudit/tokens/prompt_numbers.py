"""Prompts numbered once for a whole file, in fixed memory: from PROMPTS on, prompts are put into random groups.

Intervals resample prompts. Groups of prompts are independent of each other as prompts are, so resampling groups is as
valid; 4,096 of them are more than an interval needs, while a number for every prompt of a month of training would be
memory that grows with the file.
"""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np

from rlaudit.arrays import Integers

PROMPTS = 4096


class PromptNumbers:
    """Numbers 0..PROMPTS-1: own ones for the first prompts met, the group of its name for every later one."""

    def __init__(self) -> None:
        self._own: dict[Any, int] = {}
        self.grouped = False

    def of(self, names: Iterable[Any]) -> Integers:
        """The numbers of these prompts; the same name always has the same number."""
        return np.fromiter((self._number(name) for name in names), dtype=np.int64)

    @property
    def used(self) -> int:
        """How many numbers there may be: what every chunk of the file must agree on."""
        return PROMPTS if self.grouped else len(self._own)

    def note(self) -> str:
        """What a reader of the intervals must know; "" where every prompt has its own number."""
        if not self.grouped:
            return ""
        return f"more than {PROMPTS} prompts: intervals resample {PROMPTS} random groups of them"

    def _number(self, name: Any) -> int:
        known = self._own.get(name)
        if known is not None:
            return known
        if len(self._own) < PROMPTS:
            return self._own.setdefault(name, len(self._own))
        self.grouped = True
        return crc32(str(name).encode()) % PROMPTS
