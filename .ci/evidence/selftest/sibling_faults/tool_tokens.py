"""Tokens that a tool wrote stand between those that were sampled, masked and with any logprob.

Source: multi-turn rollouts of every framework; nothing is wrong with them.
"""

from dataclasses import replace

import numpy as np
from worlds.plant import Dose

from evidence.selftest.sibling_world import SiblingFault, SiblingWorld
from rlaudit.meaning.meaning import Kind
from rlaudit.tokens.token_batch import TokenBatch

PLANTED = (1, 4, 16)


def plant(dose: Dose) -> SiblingWorld:
    """After the first token, the same in all samples; the engine's logprobs of them are 0, the trainer's are not."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        written = PLANTED[dose]
        longer_S = np.flatnonzero(batch.lengths_S > 1)
        places = np.repeat(batch.offsets[longer_S] + 1, written)
        lengths_S = batch.lengths_S.copy()
        lengths_S[longer_S] += written
        ids = np.tile(np.arange(written), len(longer_S))
        return replace(
            batch,
            rollout_logprobs_T=np.insert(batch.rollout_logprobs_T, places, 0.0),
            trainer_logprobs_T=np.insert(batch.trainer_logprobs_T, places, -rng.exponential(2.0, len(places))),
            token_id_T=np.insert(batch.token_id_T, places, ids),
            position_T=np.concatenate([np.arange(length) for length in lengths_S]),
            sequence_T=np.repeat(np.arange(batch.sequences), lengths_S),
            token_columns={"loss_mask": np.insert(np.ones(batch.tokens), places, 0.0)},
        )

    return SiblingWorld().with_edit(edit)


FAULT = SiblingFault("tool-tokens", ("1 token", "4 tokens", "16 tokens"), plant, frozenset({Kind.AGREE}))
