"""One name of one framework for one quantity, with all that two names must share to be compared."""

from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    """What a metric is about; the order in which groups separate is what the comparison reads."""

    LOGPROBS = "logprobs"
    CORRECTION = "correction"
    OBJECTIVE = "objective"
    POLICY = "policy"
    REWARD = "reward"
    LENGTH = "length"


class Clip(StrEnum):
    """Whether a ratio in it was already truncated when it was logged."""

    BEFORE = "before clipping"
    AFTER = "after clipping"
    COUNTS = "counts what is clipped"
    NONE = "no ratio in it"


class Weights(StrEnum):
    """Whose logprobs the trainer's are."""

    ROLLOUT = "under the rollout's weights, so this metric shows engine mismatch alone"
    CURRENT = "of the current policy, so this metric mixes engine mismatch, staleness and updates"
    NONE = ""


class Worse(StrEnum):
    """On which side of today's level a metric is worse."""

    ABOVE = "above"
    BELOW = "below"
    EITHER = "either"


@dataclass(frozen=True)
class LoggedMetric:
    """A key of a log."""

    # Regular expression of the whole key.
    pattern: str
    framework: str
    # What rlaudit calls the quantity.
    canonical: str
    group: Group
    definition: str
    clip: Clip = Clip.NONE
    weights: Weights = Weights.NONE
    worse: Worse = Worse.EITHER

    @property
    def meaning(self) -> tuple[str, str, Clip, Weights]:
        """Two metrics of one meaning may be compared."""
        return self.canonical, self.definition, self.clip, self.weights
