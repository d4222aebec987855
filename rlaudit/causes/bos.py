"""The two sides saw different prompts, so all sequences differ from the first token on, and ever less.

Covered: a missing or doubled BOS, another chat template, another system prompt, as far as its influence fades. It fades
within some tens of tokens, unlike the older weights that an update in flight leaves at the beginning of each sequence.
Typical first tokens err more than later ones in prompt after prompt, unlike noise in the few contexts that samples
share. Later tokens are explained by rounding, unlike other weights and temperatures. It is there in sequences without
cached tokens, unlike a stale prefix cache.
Not covered: prompts that differ in a way the whole completion depends on.
Source: NeMo-RL's list of causes when a model is added; ms-swift 8196.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlaudit.arrays import Floats
from rlaudit.causes import stale_prefix_kv
from rlaudit.causes.attribution.cause import Cause, NotTested, Outcome, Rival, Signature
from rlaudit.causes.attribution.part_signature import LEAST_SHARE_BY_POSITION, part_signature
from rlaudit.causes.attribution.rival_patterns import SURELY_APART, TWICE, moves_most_tokens, typical_apart
from rlaudit.causes.attribution.semantic_signatures import TRAINER_TEMPERATURE
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import OF_A_VARIANCE
from rlaudit.meaning.log_ratio_shape import follows_temperature
from rlaudit.meaning.token_evidence import TokenEvidence

NAME = "bos"
# Tokens: factors of three or four apart, so that sums of them come close to any fading between.
FADES_OVER = (2.0, 8.0, 24.0)
# Positions that are compared.
FIRST, LATER = 4, (12, 36)


def basis(evidence: TokenEvidence) -> Floats | NotTested:
    """Return (T, 3): fading over a few to some tens of tokens from the first one."""
    if not np.ptp(evidence.position_T) > 0:
        return NotTested("all tokens have one position")
    return np.stack([np.exp(-evidence.position_T / tokens) for tokens in FADES_OVER], axis=1)


def signature(evidence: TokenEvidence) -> Outcome:
    """Return the k2 at the beginning of every completion."""
    outcome = part_signature(
        evidence, NAME, "is largest at the first completion tokens of all sequences", LEAST_SHARE_BY_POSITION
    )
    if isinstance(outcome, Signature) and outcome.large and not _fades(evidence):
        return replace(outcome, large=False, because=f"does not fade within {LATER[1]} tokens; {outcome.because}")
    return outcome


def _fades(evidence: TokenEvidence) -> bool:
    """Return whether typical errors are surely larger at the first tokens than some tokens on."""
    first_T, later_T = evidence.position_T < FIRST, _later(evidence)
    return not later_T.any() or typical_apart(evidence, first_T, later_T).shows(TWICE, alpha=SURELY_APART)


def _later(evidence: TokenEvidence) -> NDArray[np.bool_]:
    later_T: NDArray[np.bool_] = (evidence.position_T >= LATER[0]) & (evidence.position_T < LATER[1])
    return later_T


def _may_be_cached(evidence: TokenEvidence) -> bool:
    """Return whether all sequences may have begun with a prefix of older weights."""
    cached_T = evidence.columns.get("cached_tokens")
    if stale_prefix_kv.never_updated(evidence):
        return False
    return cached_T is None or bool((np.asarray(cached_T) > 0).all())


RIVALS = (
    Rival(
        stale_prefix_kv.NAME,
        _may_be_cached,
        "log cached_tokens of sequences with and without a cached prefix, or reset the prefix cache at every update",
    ),
    Rival(TRAINER_TEMPERATURE, follows_temperature, "log trainer_entropy, or score a sample with --score MODEL"),
    Rival(
        "other weights",
        lambda evidence: moves_most_tokens(evidence, _later(evidence)),
        "compare weight checksums of both sides",
    ),
)

CAUSE = Cause(
    name=NAME,
    title="Prompts differ (BOS, chat template)",
    layer=Layer.SEMANTIC,
    least=OF_A_VARIANCE,
    signature=signature,
    basis=basis,
    falsifier="the prompt's token ids are the same on both sides",
    next="compare the prompt's token ids of both sides for one sequence",
    rivals=RIVALS,
)
