"""The two sides saw different prompts: off from the first completion token in all sequences, fading with position.

Covered: a missing or doubled BOS, another chat template, another system prompt, as far as its influence fades. Told
from a stale prefix cache by not asking whether anything was cached, and from older weights at the beginning of each
sequence, which an update in flight leaves, by fading within some tens of tokens.
Not covered: prompts that differ in a way the whole completion depends on.
Source: NeMo-RL's list of causes when a model is added; ms-swift 8196.
"""

from dataclasses import replace

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.attribution.cause import Cause, NotTested, Outcome, Signature
from rlaudit.attribution.part_signature import LEAST_SHARE_BY_POSITION, part_signature
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence
from rlaudit.measurement.excess import CAP, LEAST_ROOM

NAME = "bos"
# Tokens: factors of three or four apart, so that sums of them come close to any fading between.
FADES_OVER = (2.0, 8.0, 24.0)
# Positions that are compared.
FIRST, LATER = 4, (12, 36)


def basis(evidence: TokenEvidence) -> Floats | NotTested:
    """Return (T, 3): fading over a few to some tens of tokens from the first one."""
    if not np.ptp(evidence.position_T) > 0:
        return NotTested("all tokens have one position")
    if "cached_tokens" not in evidence.columns and _weights_changed(evidence):
        return NotTested(
            "column cached_tokens is missing: a prefix cache kept across a weight update fades as well", "cached_tokens"
        )
    return np.stack([np.exp(-evidence.position_T / tokens) for tokens in FADES_OVER], axis=1)


def _weights_changed(evidence: TokenEvidence) -> bool:
    versions = (evidence.columns.get(name) for name in ("rollout_version", "trainer_version"))
    return any(version_T is not None and np.ptp(version_T) > 0 for version_T in versions)


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the excess at the beginning of every completion."""
    outcome = part_signature(
        evidence, NAME, "largest at the first completion tokens of all sequences", LEAST_SHARE_BY_POSITION
    )
    if isinstance(outcome, Signature) and outcome.large and not _fades(evidence):
        return replace(outcome, large=False, because=f"does not fade within {LATER[1]} tokens; {outcome.because}")
    return outcome


def _fades(evidence: TokenEvidence) -> bool:
    """Return whether what the first tokens have beyond all other parts is less than half as large some tokens on."""
    excess = evidence.excess
    assert excess is not None
    usable_T = evidence.room_T > LEAST_ROOM
    squared_T = np.square(evidence.log_ratio_T[usable_T] / evidence.room_T[usable_T])
    expected_T = excess.expected_T[usable_T]
    beyond_T = np.minimum(squared_T, CAP * expected_T) - (expected_T - excess.added_T[NAME][usable_T])
    position_T = evidence.position_T[usable_T]
    later_T = (position_T >= LATER[0]) & (position_T < LATER[1])
    if not later_T.any():
        return True
    first_T = position_T < FIRST
    return float(beyond_T[first_T].mean()) > 2.0 * float(beyond_T[later_T].mean()) if first_T.any() else False


CAUSE = Cause(
    name=NAME,
    title="Prompts differ (BOS, chat template)",
    layer=Layer.SEMANTIC,
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="identical prompt token ids on both sides",
    next="compare the prompt's token ids of both sides for one sequence",
)
