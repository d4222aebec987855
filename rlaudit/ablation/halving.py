"""The release at which a figure moves: halves a range of releases until two neighbours differ.

The figure is a metric of rollout against trainer, with its interval. Both ends are measured first: if their intervals
overlap there is nothing to look for. A release belongs to the end with the nearer value. Halving assumes that the
figure moves once: a move that is undone between two measured releases is missed, and a release apart from both ends is
named.
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
    """The measured releases, and the two between which the figure moves."""

    figures: dict[Version, Figure]
    # The last release like the first end and the first one like the last end; None if the ends agree.
    neighbours: tuple[Version, Version] | None
    # Releases between the neighbours, which could not be measured.
    unmeasured: tuple[Version, ...] = ()
    # Releases whose figure is apart from those of both ends.
    elsewhere: tuple[Version, ...] = ()


def bisect(releases: Sequence[Version], measure: Callable[[Version], Figure | None]) -> Bisection | None:
    """Halve `releases`, which are sorted, until two neighbours differ; None if an end cannot be measured.

    measure: returns None if a release cannot be measured.
    """
    old = measure(releases[0])
    new = None if old is None else measure(releases[-1])
    if old is None or new is None:
        return None
    figures = {releases[0]: old, releases[-1]: new}
    if not old.is_apart_from(new):
        return Bisection(figures, None)
    first, last = 0, len(releases) - 1
    failed: set[int] = set()
    while between := [place for place in range(first + 1, last) if place not in failed]:
        middle = min(between, key=lambda place: abs(2 * place - first - last))
        figure = measure(releases[middle])
        if figure is None:
            failed.add(middle)
            continue
        figures[releases[middle]] = figure
        if abs(figure.value - old.value) < abs(figure.value - new.value):
            first = middle
        else:
            last = middle
    figures = dict(sorted(figures.items()))
    return Bisection(
        figures,
        (releases[first], releases[last]),
        tuple(releases[first + 1 : last]),
        tuple(
            release for release, figure in figures.items() if figure.is_apart_from(old) and figure.is_apart_from(new)
        ),
    )
