"""What a user sets of a comparison: margins, clip ranges, how much is looked at."""

from dataclasses import dataclass, field

from rlaudit.measurement.metric import ObjectiveSettings
from rlaudit.statistics.resample import REPLICATES

EVIDENCE_TOKENS = 200_000


@dataclass(frozen=True)
class CompareSettings:
    """What a comparison is judged by.

    objective: the user's clip ranges. margin: the user's own, k3 in nats up to which both sides count as the same.

    floor_k2: k2 of a comparison in which nothing is wrong (two runs of one engine), nats^2, where it was measured.
    evidence_tokens: how many tokens, spread over the table, causes are looked for in; figures are of all tokens.
    trainer_excludes: the trainer replays the sampler's filters, so that it may call a sampled token impossible.
    """

    objective: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    margin: float | None = None
    floor_k2: float | None = None
    evidence_tokens: int = EVIDENCE_TOKENS
    replicates: int = REPLICATES
    seed: int = 0
    trainer_excludes: bool = False
