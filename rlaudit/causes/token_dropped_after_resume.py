"""A token was lost on the way: aligned up to a resume, shifted from there on.

Covered: one shift from some token on; with versions per token, at a change of the weights. Without versions any single
shift by one is taken for it, and said so. Told from another tokenisation by the place and by shifting once.
Source: vLLM 42043, 42042 and 42117 (async scheduling, pause with mode=keep, clear_cache=True).
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
    return alignment_signature(evidence, Misalignment.TOKEN_DROPPED)


PLANTED_SHARE = (0.05, 0.3, 1.0)


def plant(plant: Plant, ground: Ground, dose: Dose, rng: np.random.Generator) -> Plant:
    """A rollout loses the first token after a resume: its later logprobs come one place too early."""

    def edit(batch: TokenBatch, rng: np.random.Generator) -> TokenBatch:
        rollout_T = batch.rollout_logprobs_T.copy()
        version_T = batch.token_columns["rollout_version"]
        inside_T = batch.sequence_T[1:] == batch.sequence_T[:-1]
        resumed = np.flatnonzero((version_T[1:] != version_T[:-1]) & inside_T) + 1
        chosen = rng.choice(resumed, max(1, round(PLANTED_SHARE[dose] * len(resumed))), replace=False)
        for first in chosen.tolist():
            end = batch.offsets[batch.sequence_T[first] + 1]
            rollout_T[first : end - 1] = rollout_T[first + 1 : end]
            rollout_T[end - 1] = rng.choice(batch.rollout_logprobs_T)
        return replace(batch, rollout_logprobs_T=rollout_T)

    return plant.with_edit(edit)


CAUSE = Cause(
    name=Misalignment.TOKEN_DROPPED.value,
    title="A token lost at a resume",
    layer=Layer.INFERENCE_PATH,
    stage=Stage.ALIGNMENT,
    needs=(),
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="the same shift in sequences that were never paused",
    next="pause with clear_cache=False or turn async scheduling off, and look at the tokens around a resume",
    factor="async-scheduling",
    planted=Fault(("5 % of the resumed sequences", "30 %", "all"), plant),
)
