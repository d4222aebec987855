"""The steps of an engine core: when each ended, and how many tokens all its requests were given, kept or not."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from rlaudit.recorder.arrays import NotNumbers, stamps, whole_numbers
from rlaudit.recorder.recorded_lines import Damage

# Steps whose lines are lost may be skipped; a number farther on than these is a wrong one.
MOST_LOST = 1 << 20


@dataclass(frozen=True)
class SampledSteps:
    """Steps by their numbers. stamps: monotonic clock of the engine core, NaN for a step that is in no line.

    tokens: sampled; cached: prompt tokens from the prefix cache, of requests that had their first token.
    """

    stamps: "array[float]"
    tokens: "array[int]"
    cached: "array[int]"

    def first_after(self, clock: float) -> float | None:
        """Return when the first step with tokens after a moment ended; None for none."""
        place = bisect_right(self._clocks, clock)
        return self._clocks[place] if place < len(self._clocks) else None

    def tokens_between(self, begin: float, end: float) -> int:
        """Return how many tokens have a stamp in [begin, end]."""
        return self._sum(self._tokens_before, begin, end)

    def cached_between(self, begin: float, end: float) -> int:
        """Return how many prompt tokens came from the prefix cache in [begin, end]."""
        return self._sum(self._cached_before, begin, end)

    def _sum(self, before: list[int], begin: float, end: float) -> int:
        return before[bisect_right(self._clocks, end)] - before[bisect_left(self._clocks, begin)] if end >= begin else 0

    @cached_property
    def _in_order(self) -> list[tuple[float, int, int]]:
        rows = zip(self.stamps, self.tokens, self.cached, strict=True)
        return sorted(row for row in rows if math.isfinite(row[0]))

    @cached_property
    def _clocks(self) -> list[float]:
        return [row[0] for row in self._in_order]

    @cached_property
    def _tokens_before(self) -> list[int]:
        return list(accumulate((row[1] for row in self._in_order), initial=0))

    @cached_property
    def _cached_before(self) -> list[int]:
        return list(accumulate((row[2] for row in self._in_order), initial=0))


def together(several: Sequence[SampledSteps]) -> SampledSteps:
    """Return the steps of several front ends of one engine as one: their numbers mean nothing any more."""
    if len(several) == 1:
        return several[0]
    every = SampledSteps(array("d"), array("i"), array("i"))
    for one in several:
        every.stamps.extend(one.stamps)
        every.tokens.extend(one.tokens)
        every.cached.extend(one.cached)
    return every


def sampled_steps(
    records: Iterable[tuple[int, dict[str, Any]]], began: float, damage: Damage, only: int | None = None
) -> SampledSteps:
    """Put the `steps` records of one process together. A record that does not fit is left out and named.

    began: when the process did. A step that ended before, or after its line was written, was stamped on another host.
    only: the engine whose steps these are, of several that the process built; the others' have no tokens and no stamp.
    """
    steps = SampledSteps(array("d"), array("i"), array("i"))
    for line, record in records:
        try:
            part = (stamps(record["stamps"]), whole_numbers(record["tokens"]), whole_numbers(record["cached"]))
            engines = None if record["engines"] is None else whole_numbers(record["engines"])
        except NotNumbers as error:
            damage.add(f"steps whose numbers are {error} are left out", line)
            continue
        written = math.inf if record["at"] is None else record["at"]
        if any(math.isfinite(stamp) and not began <= stamp <= written for stamp in part[0]):
            damage.add("stamps of an engine core on another host: the weights that these steps had are unknown", line)
            part = (array("d", [math.nan] * len(part[0])), *part[1:])
        lost = record["first"] - len(steps.stamps)
        lengths = {len(one) for one in part} | ({len(engines)} if engines is not None else set())
        if len(lengths) != 1 or not 0 <= lost <= MOST_LOST:
            damage.add("steps that do not follow those before them are left out", line)
            continue
        if lost:
            damage.add("steps before these are in no line that can be read: when their tokens came is unknown", line)
            steps.stamps.extend([math.nan] * lost)
            steps.tokens.extend([0] * lost)
            steps.cached.extend([0] * lost)
        for place, engine in enumerate(engines if only is not None and engines is not None else ()):
            if engine != only:
                part[0][place], part[1][place], part[2][place] = math.nan, 0, 0
        steps.stamps.extend(part[0])
        steps.tokens.extend(part[1])
        steps.cached.extend(part[2])
    return steps
