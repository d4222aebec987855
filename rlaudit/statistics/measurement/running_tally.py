"""Sums per prompt over a file of any size: chunks go in one after the other, memory stays that of one chunk.

A chunk holds few of the file's prompts, so it is summed over its own prompts only and then added where they belong;
summing every chunk over all prompts would cost more than its tokens do.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.statistics.measurement.measure import Tally, all_metrics, tally
from rlaudit.statistics.measurement.metric import Columns, Metric, ObjectiveSettings
from rlaudit.tokens.pairs import LogprobPairs


@dataclass(frozen=True, eq=False)
class PartTally:
    """The tally of a chunk, or file, over the prompts that it holds."""

    # The numbers of its prompts; a number may come more than once.
    prompts: Integers
    tally: Tally


class RunningTally:
    """The tally of all chunks added so far. Prompts are numbered 0..prompts-1 over all of them."""

    def __init__(
        self, prompts: int, metrics: Iterable[Metric] | None = None, settings: ObjectiveSettings | None = None
    ) -> None:
        self._metrics = tuple(all_metrics().values() if metrics is None else metrics)
        self._settings = settings or ObjectiveSettings()
        self._sums: dict[Columns, Floats] = {}
        self._unavailable: dict[str, str] = {}
        self._tokens_P = np.zeros(prompts, dtype=np.int64)
        self._sequences_P = np.zeros(prompts, dtype=np.int64)
        self._capped = [0, 0]

    def part(self, pairs: LogprobPairs) -> "PartTally":
        """Return what a chunk that ends with a sequence adds, without adding it. Raises ValueError as `tally` does."""
        present, prompt_S = np.unique(pairs.prompt_S, return_inverse=True)
        renumbered = replace(pairs, prompt_S=prompt_S, prompts=len(present))
        return PartTally(present, tally(renumbered, self._metrics, self._settings))

    def add(self, part: "PartTally") -> None:
        """Add the tally of a chunk."""
        add_to = _adder(part.prompts)
        for columns, sums_PJ in part.tally.sums.items():
            if columns not in self._sums:
                self._sums[columns] = np.zeros((len(self._tokens_P), sums_PJ.shape[1]))
            add_to(self._sums[columns], sums_PJ)
        self._unavailable.update(part.tally.unavailable)
        add_to(self._tokens_P, part.tally.tokens_P)
        add_to(self._sequences_P, part.tally.sequences_P)
        self._capped[0] += part.tally.capped_tokens
        self._capped[1] += part.tally.capped_sequences

    def compact(self) -> PartTally:
        """Return the tally of the prompts that have tokens, with few others."""
        whole = self.tally()
        occupied = np.flatnonzero(self._sequences_P)
        rows: Any = occupied
        if occupied.size and 2 * occupied.size > occupied[-1] - occupied[0]:
            # A range is taken without a copy of what may be a hundred megabytes; the gaps in it hold zeros.
            rows = slice(occupied[0], occupied[-1] + 1)
            occupied = np.arange(occupied[0], occupied[-1] + 1)
        return PartTally(
            occupied,
            replace(
                whole,
                sums={columns: sums_PJ[rows] for columns, sums_PJ in whole.sums.items()},
                tokens_P=self._tokens_P[rows],
                sequences_P=self._sequences_P[rows],
            ),
        )

    def tally(self) -> Tally:
        """Return what was summed so far. A metric for which a chunk had no data is unavailable as a whole."""
        missing = {metric.columns for metric in self._metrics if metric.name in self._unavailable}
        return Tally(
            settings=self._settings,
            metrics=self._metrics,
            sums={columns: sums_PJ for columns, sums_PJ in self._sums.items() if columns not in missing},
            unavailable=dict(self._unavailable),
            tokens_P=self._tokens_P,
            sequences_P=self._sequences_P,
            capped_tokens=self._capped[0],
            capped_sequences=self._capped[1],
        )


def _adder(places: Integers) -> Callable[["Floats | Integers", "Floats | Integers"], None]:
    """Return what adds rows at these places, without gathering if they are a range, as a chunk's mostly are."""
    if not (np.diff(np.sort(places)) == 0).any():
        follow = bool((np.diff(places) == 1).all()) and len(places) > 0
        target: Any = slice(places[0], places[-1] + 1) if follow else places

        def add(sums_P: "Floats | Integers", rows: "Floats | Integers") -> None:
            sums_P[target] += rows

        return add
    return lambda sums_P, rows: np.add.at(sums_P, places, rows)
