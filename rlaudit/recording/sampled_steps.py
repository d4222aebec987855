"""The steps of an engine core: when each ended, and how many tokens all its requests were given, kept or not."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from rlaudit.recording.recorded_lines import Damage

# Steps whose lines are lost may be skipped; a number farther on than these is a wrong one.
MOST_LOST = 1 << 20
ANY = -1


@dataclass(frozen=True, eq=False)
class SampledSteps:
    """Steps by their numbers."""

    # The monotonic clock of the engine core, NaN for a step that is in no line.
    stamps: "array[float]" = field(default_factory=lambda: array("d"))
    # Sampled.
    tokens: "array[int]" = field(default_factory=lambda: array("i"))
    # Of several engines of the process, the one that each step is of; ANY if it may be of each.
    engines: "array[int]" = field(default_factory=lambda: array("i"))

    def add(self, record: Mapping[str, Any], began: float, line: int, damage: Damage) -> None:
        """Add a record of `steps`. One that does not fit is left out and named.

        began: when the process did. A step that ended before, or after its line was written, was stamped on another
        host.
        """
        clocks, tokens = record["stamps"], record["tokens"]
        engines = array("i", [ANY]) * len(tokens) if record["engines"] is None else record["engines"]
        written = math.inf if record["at"] is None else record["at"]
        if any(math.isfinite(stamp) and not began <= stamp <= written for stamp in clocks):
            damage.add("stamps of an engine core on another host: the weights that these steps had are unknown", line)
            clocks = array("d", [math.nan]) * len(clocks)
        lost = record["first"] - len(self.stamps)
        if not len(clocks) == len(tokens) == len(engines) or not 0 <= lost <= MOST_LOST:
            damage.add("steps that do not follow those before them are left out", line)
            return
        if lost:
            damage.add("steps before these could not be read, so it is unknown when their tokens came", line)
        self.stamps.extend(array("d", [math.nan]) * lost + clocks)
        self.tokens.extend(array("i", [0]) * lost + tokens)
        self.engines.extend(array("i", [ANY]) * lost + engines)

    def of_engine(self, number: int) -> "SampledSteps":
        """Return the steps of one engine; those of others have no tokens and no stamp."""
        own = [engine in (ANY, number) for engine in self.engines]
        stamps = (stamp if is_own else math.nan for stamp, is_own in zip(self.stamps, own, strict=True))
        tokens = (count if is_own else 0 for count, is_own in zip(self.tokens, own, strict=True))
        return SampledSteps(array("d", stamps), array("i", tokens), self.engines)

    def stamp_of(self, number: int | None) -> float:
        """Return when a step ended; NaN if that is unknown."""
        return self.stamps[number] if number is not None and number < len(self.stamps) else math.nan

    def first_after(self, clock: float) -> float | None:
        """Return when the first step with tokens after a moment ended; None for none."""
        place = bisect_right(self._clocks, clock)
        return self._clocks[place] if place < len(self._clocks) else None

    def tokens_between(self, begin: float, end: float) -> int:
        """Return how many tokens have a stamp in [begin, end]."""
        if end < begin:
            return 0
        before = self._tokens_before
        return before[bisect_right(self._clocks, end)] - before[bisect_left(self._clocks, begin)]

    @cached_property
    def _in_order(self) -> list[tuple[float, int]]:
        return sorted(row for row in zip(self.stamps, self.tokens, strict=True) if math.isfinite(row[0]))

    @cached_property
    def _clocks(self) -> list[float]:
        return [clock for clock, _ in self._in_order]

    @cached_property
    def _tokens_before(self) -> list[int]:
        return list(accumulate((tokens for _, tokens in self._in_order), initial=0))


def together(several: Sequence[SampledSteps]) -> SampledSteps:
    """Return the steps of several front ends of one engine as one, without their numbers."""
    if len(several) == 1:
        return several[0]
    every = SampledSteps()
    for steps in several:
        every.stamps.extend(steps.stamps)
        every.tokens.extend(steps.tokens)
    return every
