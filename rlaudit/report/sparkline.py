"""A row of numbers as one row of block characters."""

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "


def sparkline(values: Sequence[float | None]) -> str:
    """One character for each value, from the lowest to the highest; a blank where there is none."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    step = (high - low) / len(BLOCKS) or 1.0
    return "".join(GAP if one is None else BLOCKS[min(int((one - low) / step), len(BLOCKS) - 1)] for one in values)


def encodable(encoding: str | None) -> bool:
    """Whether a stream of this encoding can carry the blocks."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
