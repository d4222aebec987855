"""The settings of a comparison: margins, clip ranges, how much is searched for causes."""

from dataclasses import dataclass, field

from rlaudit.statistics.measurement.metric import ObjectiveSettings
from rlaudit.statistics.resample import REPLICATES
from rlaudit.tokens.first_look import FirstLook

EVIDENCE_TOKENS = 200_000


@dataclass(frozen=True)
class CompareSettings:
    """What a comparison is judged by."""

    # The user's clip ranges.
    objective: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    # The user's: k3 in nats up to which both sides count as the same.
    margin: float | None = None
    # Spread over the table; causes are searched for in these, figures are of all tokens.
    evidence_tokens: int = EVIDENCE_TOKENS
    replicates: int = REPLICATES
    seed: int = 0
    # Whether the trainer replays the sampler's filters, so that it may call a sampled token impossible.
    trainer_excludes: bool = False
    # What is left out of the log, because it is not what it claims to be.
    first_look: FirstLook = field(default_factory=FirstLook)
