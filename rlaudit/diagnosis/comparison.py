"""What `compare` is given besides tokens, and what it finds."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rlaudit.attribution.attribute import Attribution
from rlaudit.diagnosis.distance import Distance
from rlaudit.diagnosis.objective_split import ObjectiveSplit
from rlaudit.diagnosis.weights_and_tokens import VersionGap
from rlaudit.layers import Judgement
from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.meaning import Meaning
from rlaudit.measurement.measure import Measurement, Tally
from rlaudit.measurement.metric import ObjectiveSettings
from rlaudit.statistics.resample import REPLICATES
from rlaudit.tokens.alignment import AlignmentReport
from rlaudit.tokens.data_share import DataShare

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


@dataclass(frozen=True)
class Counts:
    """What was in the table, or in a part of it; counts of parts add up.

    impossible_tokens: outside the filters that the trainer replays; in no figure.
    misaligned: sequences whose two sides do not meet, by the kind of failure; in no figure.
    shortest_sequence: tokens of the shortest one compared.
    """

    tokens: int = 0
    sequences: int = 0
    compared_tokens: int = 0
    unscored_sequences: int = 0
    uncounted_tokens: int = 0
    impossible_tokens: int = 0
    misaligned: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    shortest_sequence: int = sys.maxsize

    def __add__(self, other: "Counts") -> "Counts":
        """The counts of both."""
        return Counts(
            self.tokens + other.tokens,
            self.sequences + other.sequences,
            self.compared_tokens + other.compared_tokens,
            self.unscored_sequences + other.unscored_sequences,
            self.uncounted_tokens + other.uncounted_tokens,
            self.impossible_tokens + other.impossible_tokens,
            dict(Counter(self.misaligned) + Counter(other.misaligned)),
            min(self.shortest_sequence, other.shortest_sequence),
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """One table, compared. layers: semantic, inference path, objective, in that order.

    meaning: from the trainer's scores under other meanings where they are there, from logs alone otherwise.
    attribution, split: of the evidence, `evidence_tokens` tokens of the table. tally: what `measurements` are made of.
    versions: of the weights, as far as they were read. share: of the table's sequences and tokens that are in the
    figures. Rollouts that no trainer has scored have no measurements, no tally and no distance.
    """

    name: str
    counts: Counts
    sampling: Semantics
    trainer: Semantics
    measurements: Mapping[str, Measurement]
    tally: Tally | None
    distance: Distance | None
    alignment: AlignmentReport
    meaning: Meaning
    attribution: Attribution | None
    split: ObjectiveSplit | None
    evidence_tokens: int
    layers: tuple[Judgement, Judgement, Judgement]
    share: DataShare
    versions: tuple[VersionGap, ...] = ()
    notes: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()
