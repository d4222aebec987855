"""What a cause of mismatch is: a signature in the data, the columns it needs, when it is wrong."""

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
    """What the test of a cause found."""

    # One-sided, of the null that the cause leaves no trace; Holm's correction comes later.
    p_value: float
    # Its size with an interval over prompts; `effect_of` says of what.
    effect: float
    low: float
    high: float
    effect_of: str
    # Whether the effect, and not only its p-value, is enough to name it, with any prompt left out.
    large: bool
    because: str
    # Of the excess k2 that it explains; None for a cause that no difference of logprobs shows.
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    # Whether it is large only with some prompts left out, so that it is neither named nor excluded.
    leans: bool = False


@dataclass(frozen=True)
class NotTested:
    """Why a cause could be neither named nor excluded."""

    reason: str
    # The missing column of the log.
    column: str | None = None


Outcome = Signature | NotTested


class Stage(Enum):
    """When a cause is tested: a cause that is found ends the stages after it, or moves what they are judged on."""

    ALIGNMENT = 1  # whether both sides are of the same tokens, which the policy sampled
    MEANING = 2  # what the logprobs mean
    EXCESS = 3  # what makes the log ratio larger than rounding does, all of them at once


@dataclass(frozen=True)
class Rival:
    """Something else that leaves the signature of a cause. If it fits, the cause is not named."""

    # A cause's, or what to call it if no cause has a file for it.
    name: str
    # Whether tokens show what the cause does not do, or the column that would rule the rival out is missing.
    fits: Callable[[TokenEvidence], bool]
    # The experiment, or the column to log, that settles which it is.
    tells: str


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause of mismatch."""

    # Fixed: documents and case studies use it.
    name: str
    title: str
    layer: Layer
    # Columns without which it cannot be tested.
    needs: tuple[str, ...] = ()
    # The data below which it is not tested.
    least: LeastData
    # For a cause of meaning by logs alone: scores, if there are any, decide in `semantic_signatures.py`.
    signature: Callable[[TokenEvidence], Outcome]
    # When it is wrong, after "wrong if:".
    falsifier: str
    # The experiment that settles it.
    next: str
    # A cause that does not show in the size of the log ratio comes before those that do.
    stage: Stage = Stage.EXCESS
    # The factor of `rlaudit ablate` that takes it away, if there is one.
    factor: str | None = None
    # (T, J) non-negative covariates in which the variance of the log ratio grows, for a cause that has them; or what is
    # known without any.
    basis: Callable[[TokenEvidence], "Floats | Outcome"] | None = None
    # Whether the basis is made from what the other causes leave of the variance, and added to a first fit.
    after_others: bool = False
    # What it is mistaken for.
    rivals: tuple[Rival, ...] = ()
