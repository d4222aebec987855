"""What `ablate --bisect` reports: the releases it measured, and the two neighbours between which the figure moves."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReleaseFigure:
    """The metric of one release as it comes, with its 95 % interval. engine: V0 or V1, as it was loaded."""

    version: str
    engine: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Bisection:
    """neighbours: the last release like the first one, and the first like the last one; null if the ends agree.

    unmeasured: releases between them without a figure. elsewhere: releases apart from both ends. moved: defaults that
    differ between the neighbours. advisories: known defects that one of them has and the other has not.
    """

    metric: str
    measured: Sequence[ReleaseFigure]
    neighbours: tuple[str, str] | None
    unmeasured: Sequence[str]
    elsewhere: Sequence[str]
    moved: Sequence[str]
    advisories: Sequence[str]
