"""What a comparison of logged rollouts with a trainer reports, table by table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.diagnosis.conversations import JudgedConversations
from rlaudit.diagnosis.distance import ReportedDistance
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import Semantics as Sampling
from rlaudit.meaning.limits import Limits
from rlaudit.statistics.measurement.measure import Measurement


@dataclass(frozen=True, kw_only=True)
class MisalignedSequence:
    """A sequence whose logprobs belong to other tokens."""

    name: str
    kind: str
    first: int
    lag: int | None


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Whether both sides' logprobs are of the same tokens."""

    misaligned: Mapping[str, int]
    sequences: Sequence[MisalignedSequence]
    messages: Sequence[str]
    not_tested: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class SemanticTest:
    """One test of what the logprobs mean."""

    name: str
    ln_p: float | None
    estimate: float | None
    convicts: bool


@dataclass(frozen=True, kw_only=True)
class Semantics:
    """What the logprobs were found to mean."""

    verdict: Verdict
    cause: str | None
    because: str
    trainer: str
    reported: str
    sampled: str
    tests: Sequence[SemanticTest]


@dataclass(frozen=True, kw_only=True)
class DataShare:
    """How much of what was given the figures rest on."""

    sequences: int
    sequences_left_out: int
    tokens: int
    tokens_left_out: int
    unread: bool
    left_out: float
    suffices: bool


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A line or column that cannot be used. count: how many there were of this kind; the place is of the first."""

    path: str
    line: int | None
    sequence: str | None
    message: str
    kind: str
    column: str | None
    count: int
    sequences_left_out: int


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What could not be read of a dump."""

    count: int
    sequences_left_out: int
    shown: Sequence[Fault]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One token table, or one arm of a run: figures of every comparable token, causes from a sample of them."""

    name: str
    path: str
    format: str
    files: int
    trainer_path: str | None
    tokens: int
    sequences: int
    compared_tokens: int
    unscored_sequences: int
    uncounted_tokens: int
    impossible_tokens: int
    misaligned: Mapping[str, int]
    shortest_sequence: int
    sampling: Sampling
    trainer: Sampling
    measurements: Mapping[str, Measurement]
    alignment: Alignment
    semantics: Semantics | None
    attribution: Mapping[str, Any] | None
    objective: Mapping[str, Any] | None
    evidence_tokens: int
    layers: Mapping[str, Verdict]
    is_before: bool | None = None
    data: DataShare | None = None
    faults: Faults
    notes: Sequence[str]
    distance: ReportedDistance | None = None
    limits: Limits | None = None
    conversations: JudgedConversations | None = None
