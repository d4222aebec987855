"""What one factor does at one level, on one metric, and what can be said of it."""

from dataclasses import dataclass
from enum import StrEnum

from rlaudit.diagnosis.judgement import SEMANTIC_METRIC
from rlaudit.layers import Layer
from rlaudit.statistics.measurement.contrast import Contrast

# The factor that changes nothing: what it seems to do is noise.
DUMMY = "dummy"


class EffectVerdict(StrEnum):
    """What can be said of a factor in one block."""

    REMOVES = "removes the mismatch"
    REDUCES = "reduces the mismatch"
    SMALL = "moves it by less than 30 %"
    ADDS = "adds to the mismatch"
    FLOOR = "within the noise of repeats"
    NEGLIGIBLE = "too small to matter"
    NOT_IN_FORCE = "did not take effect here"
    UNSUPPORTED = "unsupported here"
    FAILED = "arm failed"


# What reports before 0.5 say instead.
FORMER_WORDS = {
    "inside the noise floor": EffectVerdict.FLOOR,
    "not engaged here": EffectVerdict.NOT_IN_FORCE,
}
UNMOVED = frozenset(
    {
        EffectVerdict.FLOOR,
        EffectVerdict.NEGLIGIBLE,
        EffectVerdict.NOT_IN_FORCE,
        EffectVerdict.UNSUPPORTED,
        EffectVerdict.FAILED,
    }
)


@dataclass(frozen=True)
class Effect:
    """The effect of a factor's level: set alone on the candidate (first), and left out of the parity settings (last).

    verdict: an EffectVerdict, or the word of another release of rlaudit. share: of the mismatch that `first` takes
    away.
    """

    block: str
    factor: str
    level: str
    layer: Layer
    metric: str
    verdict: str
    because: str
    floor: float
    first: Contrast | None
    last: Contrast | None
    share: float | None
    interacts: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", FORMER_WORDS.get(self.verdict, self.verdict))

    @property
    def worth_a_row(self) -> bool:
        """Whether it is shown: a factor of the inference path is on the semantic metric only if it moves it."""
        foreign = self.metric == SEMANTIC_METRIC and self.layer is not Layer.SEMANTIC
        return not foreign or self.verdict not in UNMOVED
