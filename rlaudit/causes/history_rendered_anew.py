"""The history of a conversation was rendered anew: the engine saw other tokens than the trainer scores behind.

Covered: turns whose prompt does not begin with what was sent and sampled before, and the turns that follow them,
against all others. `rlaudit compare` finds them by the ids of prompts and completions; without these it is not tested.
A trainer that scores each turn behind the prompt that was sent loses nothing.
Not covered: a log in which every turn comes after a change. Later turns have longer contexts, whose noise is somewhat
larger; their typical tokens must err several times as much.
Source: verl 6080, prime-rl 1637, ms-swift 10012, NeMo-Gym 1824.
"""

from dataclasses import replace

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Signature
from rlaudit.causes.attribution.part_signature import SHARE, part_signature
from rlaudit.causes.attribution.rival_patterns import SURELY_APART, manifold_apart
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.token_evidence import TokenEvidence

NAME = "history-rendered-anew"
# Of each token: whether its turn comes after a change.
COLUMN = "after_a_changed_history"
# Tokens: what a change near the end of the history does fades, what is missing from its middle does not.
FADES_OVER = (8.0, 32.0)
# Logarithm of how much larger typical squares are: the noise of a context ten times as long is within it (SmolLM2).
FOURFOLD = 1.4


def basis(evidence: TokenEvidence) -> Floats | Outcome:
    """Return (T, 3): after a change at all, and fading over a few and over some tens of tokens."""
    if COLUMN not in evidence.columns:
        if evidence.missing(("prompt_tokens",)):
            return NotTested("the column prompt_token_ids is missing", "prompt_token_ids")
        return Signature(
            1.0, 0.0, 0.0, 0.0, "turns", False, "no turn begins with other tokens than were sent and sampled"
        )
    after_T = np.asarray(evidence.columns[COLUMN], dtype=np.float64)
    if after_T.all() or not after_T.any():
        return NotTested("every token, or none, comes after a changed history, so there is nothing to compare with")
    fading = [np.exp(-evidence.position_T / tokens) for tokens in FADES_OVER]
    return np.stack([after_T, *(after_T * fade for fade in fading)], axis=1)


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 that only turns after a change show."""
    after_T = np.asarray(evidence.columns[COLUMN]) > 0
    because = (
        f"turns after a changed history ({100 * float(after_T.mean()):.0f} % of all tokens) are farther off than the "
        f"other tokens; this difference alone is {SHARE}"
    )
    outcome = part_signature(evidence, NAME, because)
    if isinstance(outcome, NotTested) or not outcome.large:
        return outcome
    large = manifold_apart(evidence, after_T, ~after_T).shows(FOURFOLD, alpha=SURELY_APART)
    because = outcome.because if large else f"typical tokens are not farther off; {outcome.because}"
    return replace(outcome, large=large, because=because)


CAUSE = Cause(
    name=NAME,
    title="The history of a conversation rendered anew",
    layer=Layer.SEMANTIC,
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="turns whose history is unchanged differ as much",
    next="pass token ids from turn to turn (prompt_token_ids), or score each turn behind the prompt that was sent",
)
