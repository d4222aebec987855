"""The rows of one side stand beside others of the other side: only one side of a batch was put in another order.

Covered: whole rows, all or some, if both sides of each are in the table. Told from another tokenisation and from large
mismatches by the row of another sequence, which fits as only an engine and its trainer do.
Not covered: rows that fit no other (of another batch, or shifted as well), and sequences of fewer than eight tokens.
Source: verl 4232 (a batch that is sorted by length for its ranks, and what is kept beside it in the old order).
"""

import math

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.attribution.alignment_signature import CERTAIN, proportion_interval
from rlaudit.attribution.cause import Cause, NotTested, Outcome, Signature, Stage
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_AGREEMENT
from rlaudit.meaning.token_evidence import TokenEvidence, once
from rlaudit.tokens.lag_path import CAP_NATS, COST_LEFT, LOST_SHARE, unrelated_cost

NAME = "swapped-rows"
# A row is known by its first tokens: fewer than FEWEST are anything, and more than COMPARED only cost time.
FEWEST, COMPARED = 8, 64
# What another row has to save: as much as a change of lag (alignment.py), beside the logarithm of the rows tried.
SAVED_NATS = 9.0
# Sequences whose row is looked for: an even choice, if there are more.
LOOKED_FOR = 256
FEWEST_SEQUENCES = 2
LEAST_SHARE_OF_APART = 0.5


@once
def signature(evidence: TokenEvidence) -> Outcome:
    """Return the share of sequences whose rollout logprobs fit the trainer's row of another sequence."""
    rollout_SL = _rows(evidence, evidence.rollout_logprobs_T)
    trainer_SL = _rows(evidence, evidence.trainer_logprobs_T)
    long_S = np.isfinite(rollout_SL).sum(axis=1) >= FEWEST
    if long_S.sum() < FEWEST_SEQUENCES:
        return NotTested(f"fewer than {FEWEST_SEQUENCES} sequences have {FEWEST} tokens")
    unrelated = unrelated_cost(evidence.rollout_logprobs_T, evidence.trainer_logprobs_T)
    apart = np.flatnonzero(long_S & (_costs(rollout_SL, trainer_SL)[0] >= LOST_SHARE * unrelated))
    chosen = apart[:: max(1, -(-len(apart) // LOOKED_FOR))]
    fitting = sum(_fits_another(rollout_SL[s], trainer_SL[s], trainer_SL[apart[apart != s]]) for s in chosen)
    low, high = proportion_interval(fitting, len(chosen))
    share = len(apart) / len(long_S)
    return Signature(
        p_value=CERTAIN**fitting,
        effect=share * fitting / max(len(chosen), 1),
        low=share * low,
        high=share * high,
        effect_of="share of sequences",
        large=fitting >= FEWEST_SEQUENCES and fitting >= LEAST_SHARE_OF_APART * len(chosen),
        because=f"in {len(apart)} of {len(long_S)} sequences the two sides have nothing in common; {fitting} of "
        f"{len(chosen)} rows of the rollout fit the trainer's row of another sequence",
        leans=0 < fitting < FEWEST_SEQUENCES,
    )


def _rows(evidence: TokenEvidence, logprobs_T: Floats) -> Floats:
    """Return (S, COMPARED), the first logprobs of each sequence, NaN past its end."""
    sequences = len(evidence.cluster_S)
    first_S = np.searchsorted(evidence.sequence_T, np.arange(sequences))
    place_T = np.arange(evidence.tokens) - first_S[evidence.sequence_T]
    rows_SL = np.full((sequences, COMPARED), np.nan)
    kept_T = place_T < COMPARED
    rows_SL[evidence.sequence_T[kept_T], place_T[kept_T]] = logprobs_T[kept_T]
    return rows_SL


def _costs(rollout_L: Floats, trainer_NL: Floats) -> tuple[Floats, Floats]:
    """Return (N,) what the two sides differ by, capped nats per token, and how many tokens both have."""
    apart_NL = np.minimum(np.abs(rollout_L - trainer_NL), CAP_NATS)
    both_NL = np.isfinite(apart_NL)
    tokens_N = both_NL.sum(axis=-1).astype(np.float64)
    return np.where(both_NL, apart_NL, 0.0).sum(axis=-1) / np.maximum(tokens_N, 1.0), tokens_N


def _fits_another(rollout_L: Floats, own_L: Floats, others_NL: Floats) -> bool:
    """Return whether the trainer's row of another sequence fits far better than the sequence's own."""
    if not len(others_NL):
        return False
    own, _ = _costs(rollout_L, own_L[None, :])
    cost_N, tokens_N = _costs(rollout_L, others_NL)
    saved_N = tokens_N * (own - cost_N)
    enough = SAVED_NATS + math.log(len(others_NL))
    return bool(np.any((tokens_N >= FEWEST) & (cost_N <= COST_LEFT * own) & (saved_N >= enough)))


CAUSE = Cause(
    name=NAME,
    title="Swapped rows",
    layer=Layer.SEMANTIC,
    stage=Stage.ALIGNMENT,
    least=OF_AGREEMENT,
    signature=signature,
    falsifier="rows that meet once both sides are joined by the prompt's and the sample's id",
    next="join both sides by id instead of by place, and compare again; look at what sorts or balances the batch",
)
