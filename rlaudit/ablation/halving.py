"""The release at which a figure moves: halves a range of releases until two neighbours differ.

The figure is a metric of rollout against trainer, with its interval. Both ends are measured first: if their intervals
overlap there is nothing to look for. A release belongs to the end with the nearer value. Halving takes a
figure that moves once: that it moved and came back between two measured releases is not seen, and one that lies apart
from both ends is named.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packaging.version import Version


@dataclass(frozen=True)
class Figure:
    """A metric of one release, with the ends of its interval."""

    value: float
    low: float
    high: float

    def is_apart_from(self, other: "Figure") -> bool:
        """Return whether the intervals do not overlap."""
        return self.low > other.high or other.low > self.high


@dataclass(frozen=True)
class Bisection:
    """What was found. figures: of the measured releases; neighbours: the last release like the first one and the first
    like the last one, None if the ends agree. unmeasured: releases between them, which could not be measured.
    elsewhere: releases whose figure is apart from those of both ends.
    """

    figures: dict[Version, Figure]
    neighbours: tuple[Version, Version] | None
    unmeasured: tuple[Version, ...] = ()
    elsewhere: tuple[Version, ...] = ()


def bisect(releases: Sequence[Version], measure: Callable[[Version], Figure | None]) -> Bisection | None:
    """Measure releases, oldest first, until two neighbours differ. measure: returns None for one that cannot be.

    None if an end cannot be measured.
    """
    figures: dict[Version, Figure] = {}
    for end in (releases[0], releases[-1]):
        found = measure(end)
        if found is None:
            return None
        figures[end] = found
    old, new = figures[releases[0]], figures[releases[-1]]
    if not old.is_apart_from(new):
        return Bisection(figures, None)
    first, last = 0, len(releases) - 1
    failed: set[int] = set()
    while between := [place for place in range(first + 1, last) if place not in failed]:
        middle = min(between, key=lambda place: abs(2 * place - first - last))
        found = measure(releases[middle])
        if found is None:
            failed.add(middle)
            continue
        figures[releases[middle]] = found
        if abs(found.value - old.value) < abs(found.value - new.value):
            first = middle
        else:
            last = middle
    return Bisection(
        dict(sorted(figures.items())),
        (releases[first], releases[last]),
        tuple(releases[first + 1 : last]),
        tuple(one for one, own in sorted(figures.items()) if own.is_apart_from(old) and own.is_apart_from(new)),
    )
