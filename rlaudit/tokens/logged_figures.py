"""The figures of a table of logged tokens, of the sample that causes are looked for in: drawing all would take longer
than comparing all.

Covered: sound sequences that the trainer scored.
Not covered: whether the two sides of a sequence meet, which the comparison finds out later; a shifted sequence is drawn
here and is in none of the comparison's metrics.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.arrays import Floats, Integers
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.sound import sound
from rlaudit.tokens.token_batch import Column, TokenBatch
from rlaudit.tokens.token_figures import TokenFigures

VERSIONS = ("trainer_version", "rollout_version")
DRAWN = (*VERSIONS, "trainer_entropy")


class LoggedFigures:
    """Adds up batches of one table."""

    def __init__(self, trainer_excludes: bool) -> None:
        self._figures = TokenFigures("")
        self._trainer_excludes = trainer_excludes

    def add(self, batch: TokenBatch) -> None:
        """One more."""
        usable = self._usable(batch)
        self._figures.add(
            usable.rollout_logprobs_T,
            usable.trainer_logprobs_T,
            usable.position_T,
            usable.token_columns.get("trainer_entropy"),
        )
        self._add_lags(usable)

    def as_report(self, name: str) -> dict[str, Any]:
        """An entry of the report's `token_figures`."""
        return {**self._figures.as_report(), "name": name}

    def _usable(self, read: TokenBatch) -> "_Usable":
        # Broken sequences are named by the comparison; here they are only left out.
        batch = sound(read, Path(), Faults(), self._trainer_excludes)
        counted_T = batch.comparable_T
        return _Usable(
            batch.rollout_logprobs_T[counted_T],
            batch.trainer_logprobs_T[counted_T],
            batch.position_T[counted_T],
            {name: values[counted_T] for name, values in batch.token_columns.items() if name in DRAWN},
        )

    def _add_lags(self, usable: "_Usable") -> None:
        trainer_T, rollout_T = (usable.token_columns.get(name) for name in VERSIONS)
        if trainer_T is not None and rollout_T is not None:
            lag_T = np.asarray(trainer_T, dtype=np.float64) - np.asarray(rollout_T, dtype=np.float64)
            self._figures.add_lags(usable.trainer_logprobs_T - usable.rollout_logprobs_T, lag_T)


@dataclass(frozen=True, eq=False)
class _Usable:
    """Tokens of sound sequences that the loss counts and the trainer scored."""

    rollout_logprobs_T: Floats
    trainer_logprobs_T: Floats
    position_T: Integers
    token_columns: Mapping[str, Column]
