"""Of every group the right samples alone are logged.

Source: rejection sampling and best of n; what is left is sharper than what it was drawn from.
"""

from dataclasses import replace

import numpy as np
from worlds.plant import Dose

from evidence.selftest.sibling_world import OPEN, SiblingFault, SiblingWorld
from rlaudit.meaning.broken_groups import Broken
from rlaudit.tokens.token_batch import TokenBatch

# Of the token ids: an answer that begins with one of them is right.
RIGHT = (0.9, 0.75, 0.5)
VOCABULARY = 256


def plant(dose: Dose) -> SiblingWorld:
    """The first token decides the outcome: the rarer a right one, the more samples go."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        right_S = batch.token_id_T[batch.offsets[:-1]] < RIGHT[dose] * VOCABULARY
        return replace(batch, sequence_columns={"reward": right_S.astype(np.float64)}).take(np.flatnonzero(right_S))

    return SiblingWorld().with_edit(edit)


FAULT = SiblingFault(
    "best-of-n", ("9 answers in 10 are right", "3 in 4", "half"), plant, OPEN, frozenset({Broken.ONE_OUTCOME})
)
