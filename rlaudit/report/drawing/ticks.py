"""Where an axis has numbers, and how they are written: few, short, and the same for every picture."""

from collections.abc import Sequence
from math import ceil, floor, log10

MOST = 7


def short(value: float) -> str:
    """0, 0.001, 0.25, 40, 1e-7: as few signs as tell it."""
    if value == 0:
        return "0"
    sign, size = ("−" if value < 0 else ""), abs(value)
    if not 1e-3 <= size < 1e5:
        digits, power = f"{size:.0e}".split("e")
        return f"{sign}{digits}e{'−' if power.startswith('-') else ''}{int(power.lstrip('+-'))}"
    return f"{sign}{size:g}"


def decades(low: float, high: float, most: int = MOST) -> list[float]:
    """Powers of ten from low to high, both above zero; every second or third where there would be more than `most`.

    Where there is one at most, 1, 2 and 5 of each.
    """
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    step = max(1, ceil((last - first + 1) / most))
    if last <= first:
        between = [size * 10.0**power for power in range(first - 1, last + 2) for size in (1, 2, 5)]
        return [one for one in between if low <= one <= high]
    return [10.0**power for power in range(last, first - 1, -step)][::-1]


def both_sides(inner: float, outer: float, most: int = MOST) -> list[float]:
    """0 and powers of ten above `inner` up to `outer`, on both sides."""
    positive = decades(inner, outer, max(most // 2, 1)) if outer > inner else []
    return [*(-one for one in reversed(positive)), 0.0, *positive]


def thinned(labels: Sequence[str], most: int) -> list[str]:
    """Every nth label, the others empty, so that at most `most` are written."""
    step = ceil(len(labels) / most) or 1
    return [label if place % step == 0 else "" for place, label in enumerate(labels)]
