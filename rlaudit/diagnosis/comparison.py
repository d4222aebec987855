"""What `compare` is given besides tokens, and what it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlaudit.diagnosis.judgement import Judgement
from rlaudit.diagnosis.objective_split import ObjectiveSplit
from rlaudit.mismatch.alignment import AlignmentReport
from rlaudit.mismatch.attribute import Attribution
from rlaudit.mismatch.bootstrap import REPLICATES
from rlaudit.mismatch.candidates import Semantics
from rlaudit.mismatch.evidence import Measurement
from rlaudit.mismatch.metric import ObjectiveSettings
from rlaudit.mismatch.semantics import SemanticEvidence

MARGIN = 1e-3
EVIDENCE_TOKENS = 200_000


@dataclass(frozen=True)
class CompareSettings:
    """objective: the user's clip ranges. margin: k3 in nats up to which rollout and trainer count as the same.

    floor_k2: k2 of a comparison in which nothing is wrong (two runs of one engine), nats^2, where it was measured.
    evidence_tokens: how many tokens, spread over the table, causes are looked for in; figures are of all tokens.
    trainer_excludes: the trainer replays the sampler's filters, so that it may call a sampled token impossible.
    """

    objective: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    margin: float = MARGIN
    floor_k2: float | None = None
    evidence_tokens: int = EVIDENCE_TOKENS
    replicates: int = REPLICATES
    seed: int = 0
    trainer_excludes: bool = False


@dataclass(frozen=True)
class Counts:
    """What was in the table. impossible_tokens: outside the filters that the trainer replays; in no figure.

    misaligned: sequences whose two sides do not meet, by the kind of failure; in no figure.
    shortest_sequence: tokens of the shortest one compared.
    """

    tokens: int
    sequences: int
    compared_tokens: int
    unscored_sequences: int
    uncounted_tokens: int
    impossible_tokens: int
    misaligned: Mapping[str, int]
    shortest_sequence: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """One table, compared. layers: semantic, inference path, objective, in that order.

    semantics: the identification, where the trainer's scores under other meanings are there; None from logs alone.
    attribution, split: of the evidence, `evidence_tokens` tokens of the table.
    """

    name: str
    counts: Counts
    sampling: Semantics
    trainer: Semantics
    measurements: Mapping[str, Measurement]
    alignment: AlignmentReport
    semantics: SemanticEvidence | None
    attribution: Attribution | None
    split: ObjectiveSplit | None
    evidence_tokens: int
    layers: tuple[Judgement, Judgement, Judgement]
    notes: tuple[str, ...] = ()
    not_seen: tuple[str, ...] = ()
