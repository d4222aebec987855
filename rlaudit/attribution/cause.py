"""What a cause of mismatch is: a signature in the data, the columns it needs, what would refute it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from rlaudit.arrays import Floats
from rlaudit.layers import Layer
from rlaudit.meaning.least_data import LeastData
from rlaudit.meaning.token_evidence import TokenEvidence

# A cause that explains less of the excess mismatch than this is not worth naming, however significant it is; the lower
# end of its interval may be at SURELY.
LEAST_SHARE = 0.1
SURELY = 0.04


@dataclass(frozen=True)
class Signature:
    """What one test of one cause found.

    p_value: one-sided, of the null that the cause leaves no trace; Holm's correction comes later.
    effect, low, high: its size with an interval over prompts, in the words of `effect_of`.
    share, share_low, share_high: of the excess k2 that it explains; None for a cause that no difference of logprobs
    shows. large: whether the effect, and not only its p-value, is enough to name it, whichever prompt is left out.
    leans: whether it is with some prompts left out only, so that it is neither named nor excluded.
    """

    p_value: float
    effect: float
    low: float
    high: float
    effect_of: str
    large: bool
    because: str
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    leans: bool = False


@dataclass(frozen=True)
class NotTested:
    """Why a cause could be neither named nor excluded. column: of the log, that would tell."""

    reason: str
    column: str | None = None


Outcome = Signature | NotTested


class Stage(Enum):
    """When a cause is looked for: one that is found ends the stages after it, or moves what they are judged on."""

    ALIGNMENT = 1  # whether both sides speak of the same tokens
    MEANING = 2  # what the logprobs mean
    EXCESS = 3  # what makes the log ratio larger than rounding does, all of them at once


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause of mismatch.

    name: fixed, used in documents and case studies. needs: columns without which it cannot be tested.

    basis: (T, J) non-negative covariates in which the variance of the log ratio grows, for a cause that is known by
    them. after_others: the basis is made from what the other causes leave of the variance, and added to a first fit.
    least: the data below which nothing is said of it. falsifier: what would refute it. next: the one experiment that
    settles it. signature: by logs alone for a cause of meaning, which scores decide (`semantic_signatures.py`).
    factor: of `rlaudit ablate`, the one that takes it away, if there is one. stage: a cause that does not show in the
    size of the log ratio comes before those that do.
    """

    name: str
    title: str
    layer: Layer
    needs: tuple[str, ...] = ()
    least: LeastData
    signature: Callable[[TokenEvidence], Outcome]
    falsifier: str
    next: str
    stage: Stage = Stage.EXCESS
    factor: str | None = None
    basis: Callable[[TokenEvidence], "Floats | NotTested"] | None = None
    after_others: bool = False
