"""The steps of an engine core: when each ended, and how many tokens all its requests were given, kept or not."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from rlaudit.recording.encoded_numbers import NotNumbers, stamps, whole_numbers
from rlaudit.recording.recorded_lines import Damage

# Steps whose lines are lost may be skipped; a number farther on than these is a wrong one.
MOST_LOST = 1 << 20


@dataclass(frozen=True)
class SampledSteps:
    """Steps by their numbers."""

    # Monotonic clock of the engine core, NaN for a step that is in no line.
    stamps: "array[float]"
    # How many tokens each sampled.
    tokens: "array[int]"

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
    every = SampledSteps(array("d"), array("i"))
    for steps in several:
        every.stamps.extend(steps.stamps)
        every.tokens.extend(steps.tokens)
    return every


def sampled_steps(
    records: Iterable[tuple[int, dict[str, Any]]], began: float, damage: Damage, only: int | None = None
) -> SampledSteps:
    """Return the steps of one process from its `steps` records. A record that does not fit is left out and named.

    began: when the process did. A step that ended before, or after its line was written, was stamped on another host.
    only: the engine, of several that the process built, whose steps count; the others' have no tokens and no stamp.
    """
    steps = SampledSteps(array("d"), array("i"))
    for line, record in records:
        try:
            clocks, tokens = stamps(record["stamps"]), whole_numbers(record["tokens"])
            engines = None if record["engines"] is None else whole_numbers(record["engines"])
        except NotNumbers as error:
            damage.add(f"steps whose numbers are {error} are left out", line)
            continue
        written = math.inf if record["at"] is None else record["at"]
        if any(math.isfinite(stamp) and not began <= stamp <= written for stamp in clocks):
            damage.add("stamps of an engine core on another host: the weights that these steps had are unknown", line)
            clocks = array("d", [math.nan] * len(clocks))
        lost = record["first"] - len(steps.stamps)
        lengths = {len(clocks), len(tokens), len(tokens if engines is None else engines)}
        if len(lengths) != 1 or not 0 <= lost <= MOST_LOST:
            damage.add("steps that do not follow those before them are left out", line)
            continue
        if lost:
            damage.add("steps before these are in no line that can be read: when their tokens came is unknown", line)
            steps.stamps.extend([math.nan] * lost)
            steps.tokens.extend([0] * lost)
        for place, engine in enumerate(engines if only is not None and engines is not None else ()):
            if engine != only:
                clocks[place], tokens[place] = math.nan, 0
        steps.stamps.extend(clocks)
        steps.tokens.extend(tokens)
    return steps
