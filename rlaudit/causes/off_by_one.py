"""The logprobs of one side belong to the neighbouring token, in whole sequences.

Covered: shifts of one to three tokens (labels sliced [1:] on one side and [:-1] on the other). Told from everything
else by agreement at another lag. Not covered: larger shifts, which look like other tokens altogether.
Source: ms-swift 8196.
"""

from dataclasses import replace

import numpy as np

from rlaudit.attribution.alignment_signature import alignment_signature
from rlaudit.attribution.cause import Cause, Outcome, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.tokens.alignment import Misalignment
from rlaudit.tokens.token_batch import TokenBatch
from rlaudit.worlds.fault import Fault
from rlaudit.worlds.ground import Ground
from rlaudit.worlds.plant import Dose, Plant


def signature(evidence: TokenEvidence) -> Outcome:
    """Sequences that the search for shifts found."""
    return alignment_signature(evidence, Misalignment.OFF_BY_ONE)


PLANTED_SHARE = (0.05, 0.5, 1.0)


def _chosen(batch: TokenBatch, share: float, rng: np.random.Generator) -> list[int]:
    count = max(1, round(share * batch.sequences))
    return sorted(rng.choice(batch.sequences, count, replace=False).tolist())


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """Labels sliced [1:] on one side: the trainer's logprobs belong to the neighbouring token."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        trainer_T = batch.trainer_logprobs_T.copy()
        shift = int(rng.choice([-1, 1]))
        for sequence in _chosen(batch, PLANTED_SHARE[dose], rng):
            rows = slice(batch.offsets[sequence], batch.offsets[sequence + 1])
            trainer_T[rows] = np.roll(trainer_T[rows], shift)
        return replace(batch, trainer_logprobs_T=trainer_T)

    return plant.with_edit(edit)


CAUSE = Cause(
    name=Misalignment.OFF_BY_ONE.value,
    title="Off by one",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    needs=(),
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="agreement at lag 0 after the labels of one side are moved",
    next="move the labels of one side by the lag that was found, and compare again",
    planted=Fault(("5 % of the sequences", "half", "all"), plant),
)
