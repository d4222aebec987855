"""What a comparison of logged rollouts with a trainer reports, table by table."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

from rlaudit.layers import Verdict
from rlaudit.report.parts.measured import Distance, Measurement


class Meaning(TypedDict):
    """What a logprob means: the parameters it was computed with."""

    temperature: float
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    top_k: int


class MisalignedSequence(TypedDict):
    """A sequence whose logprobs belong to other tokens."""

    name: str
    kind: str
    first: int
    lag: int | None


class Alignment(TypedDict):
    """Whether both sides' logprobs are of the same tokens."""

    misaligned: Mapping[str, int]
    sequences: Sequence[MisalignedSequence]
    messages: Sequence[str]
    not_tested: Sequence[str]


class SemanticTest(TypedDict):
    """One test of what the logprobs mean."""

    name: str
    ln_p: float | None
    estimate: float | None
    convicts: bool


class Semantics(TypedDict):
    """What the logprobs were found to mean."""

    verdict: Verdict
    cause: str | None
    because: str
    trainer: str
    reported: str
    sampled: str
    tests: Sequence[SemanticTest]


class DataShare(TypedDict):
    """How much of what was given the figures rest on."""

    sequences: int
    sequences_left_out: int
    tokens: int
    tokens_left_out: int
    unread: bool
    left_out: float
    suffices: bool


class Fault(TypedDict):
    """A line or column that cannot be used. count: how many there were of this kind; the place is of the first."""

    path: str
    line: int | None
    sequence: str | None
    message: str
    kind: str
    column: str | None
    count: int
    sequences_left_out: int


class Faults(TypedDict):
    """What could not be read of a dump."""

    count: int
    sequences_left_out: int
    shown: Sequence[Fault]


class VersionOfWeights(TypedDict):
    """One version of the weights of a recorded engine: how far its tokens' logprobs lie apart, and what its dtype hid.

    changed: elements of the weights that were sent with another value than the time before. rounded_away: those of them
    that the engine's dtype rounds to the value it had. apart: what is held from what was sent, relative to that.
    """

    version: int
    tokens: int
    mean_abs_log_ratio: float | None
    k2: float | None
    changed: int
    rounded_away: int
    apart: float | None


class Compared(TypedDict):
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
    sampling: Meaning
    trainer: Meaning
    measurements: Mapping[str, Measurement]
    alignment: Alignment
    semantics: Semantics | None
    attribution: Mapping[str, Any] | None
    objective: Mapping[str, Any] | None
    evidence_tokens: int
    layers: Mapping[str, Verdict]
    data: NotRequired[DataShare]
    faults: Faults
    notes: Sequence[str]
    versions: NotRequired[Sequence[VersionOfWeights]]
    distance: NotRequired[Distance]
    is_before: NotRequired[bool]
