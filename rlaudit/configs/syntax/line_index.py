"""Lines and columns of offsets in one text."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from rlaudit.settings.place import Place


class LineIndex:
    """Knows where the lines of a file begin, and the places of the characters of a part cut out of it.

    origins: offset in the file of every character of the part, and of its end; None if the part is the file.
    """

    def __init__(self, text: str, path: str, origins: Sequence[int] | None = None) -> None:
        self.text, self.path, self.origins = text, path, origins
        lengths = (len(line) for line in text.split("\n"))
        self.starts = [0, *accumulate(length + 1 for length in lengths)]

    def part(self, origins: Sequence[int]) -> "LineIndex":
        """Return the same file, seen through a part of it. origins: offsets in the file."""
        index = object.__new__(LineIndex)
        index.text, index.path, index.origins, index.starts = self.text, self.path, origins, self.starts
        return index

    def offset(self, position: int) -> int:
        """Return the offset in the file of a position in the part."""
        if self.origins is None:
            return position
        return self.origins[min(position, len(self.origins) - 1)] if self.origins else 0

    def place(self, start: int, end: int, setting: str) -> Place:
        """Return the place of part[start:end]."""
        first = self.offset(start)
        return self.place_in_file(first, first if end <= start else self.offset(end - 1) + 1, setting)

    def place_in_file(self, first: int, last: int, setting: str = "") -> Place:
        """Return the place of two offsets in the file."""
        line = bisect_right(self.starts, first) - 1
        return Place(self.path, line + 1, first - self.starts[line] + 1, setting, first, max(first, last))
