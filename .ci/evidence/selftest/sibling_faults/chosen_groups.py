"""Groups in which all samples were right, or all wrong, are left out of the log.

Source: dynamic sampling (DAPO, Yu et al. 2025), zero-advantage filters of most frameworks.
"""

from dataclasses import replace

import numpy as np
from worlds.plant import Dose

from evidence.selftest.sibling_world import OPEN, SiblingFault, SiblingWorld
from rlaudit.meaning.broken_groups import Broken
from rlaudit.tokens.token_batch import TokenBatch

# Of the token ids: an answer that begins with one of them is right.
RIGHT = (0.1, 0.25, 0.5)
VOCABULARY = 256


def plant(dose: Dose) -> SiblingWorld:
    """The first token decides the outcome: the rarer a right one, the more groups go."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        reward_S = (batch.token_id_T[batch.offsets[:-1]] < RIGHT[dose] * VOCABULARY).astype(np.float64)
        right_P = np.bincount(batch.prompt_S, reward_S)
        mixed_P = (right_P > 0) & (right_P < np.bincount(batch.prompt_S))
        rewarded = replace(batch, sequence_columns={"reward": reward_S})
        return rewarded.take(np.flatnonzero(mixed_P[batch.prompt_S]))

    return SiblingWorld().with_edit(edit)


FAULT = SiblingFault(
    "chosen-groups", ("1 answer in 10 is right", "1 in 4", "half"), plant, OPEN, frozenset({Broken.CHOSEN})
)
