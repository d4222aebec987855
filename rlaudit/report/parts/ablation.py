"""What an ablation reports: its arms, its factors' effects, its blocks and what it cost."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rlaudit.layers import Layer, Verdict
from rlaudit.report.parts.measured import Contrast, Distance, Measurement


class Observed(TypedDict):
    """The level of a factor that was seen in the engine."""

    level: str | None
    because: str


class Head(TypedDict):
    """The precision in which a head was computed, known from the lattice of its logprobs."""

    lattice: Literal["bf16", "not bf16", "unknown"]
    hit_rate: float | None
    because: str


class Ran(TypedDict):
    """Batches that were counted."""

    batches: NotRequired[int]
    flashinfer_batches: NotRequired[int]
    cascade: NotRequired[Mapping[str, int] | None]
    graphs: NotRequired[Mapping[str, int] | None]


class Loaded(TypedDict):
    """What the engine's workers loaded and ran, as they say themselves; empty if no engine was loaded.

    features: null where there is no such thing (`because`) or looking went wrong (`failed`). ran: batches counted while
    the arm was generated.
    """

    features: NotRequired[Mapping[str, str | None]]
    because: NotRequired[Mapping[str, str]]
    failed: NotRequired[Mapping[str, str]]
    ran: NotRequired[Ran]


class BatchProbe(TypedDict):
    """The same request alone and among others in one engine: whether both agree bit for bit.

    differs_at: the first token that differs. by: the largest difference up to it in nats.
    """

    identical: NotRequired[bool]
    requests: NotRequired[int]
    tokens: NotRequired[int]
    differs_at: NotRequired[int | None]
    by: NotRequired[float]
    error: NotRequired[str]


class ArmTrainer(TypedDict):
    """How the trainer of an arm computes."""

    dtype: str
    head_dtype: str
    attention: str
    temperature: Literal["divide", "ignore"]


class ArmError(TypedDict):
    """Where an arm failed, and the engine's words."""

    boundary: str
    message: str


class ArmSemantics(TypedDict):
    """What the logprobs of an arm mean to its trainer."""

    verdict: Verdict
    cause: str | None
    because: str


class Heads(TypedDict):
    """The heads of both sides."""

    rollout: Head
    trainer: Head


class Arm(TypedDict):
    """One controlled arm. engaged: whether its factor was in force, against the arm it is compared with."""

    name: str
    block: str
    role: str
    environment: str
    levels: Mapping[str, str]
    engine_args: Mapping[str, Any]
    variables: Mapping[str, str]
    sampling: Mapping[str, Any]
    trainer: ArmTrainer
    engaged: Mapping[str, bool | None]
    status: Literal["ok", "failed", "unsupported"]
    error: ArmError | None
    cell: str
    seconds: float | None
    peak_memory_mib: float | None
    resolved: Mapping[str, Any]
    loaded: NotRequired[Loaded]
    batch_probe: NotRequired[BatchProbe]
    measurements: Mapping[str, Measurement]
    cached_tokens: NotRequired[int]
    observed: NotRequired[Mapping[str, Observed]]
    semantics: NotRequired[ArmSemantics]
    heads: NotRequired[Heads]


class EffectVerdict(StrEnum):
    """What can be said of a factor in one block."""

    REMOVES = "removes the mismatch"
    REDUCES = "reduces the mismatch"
    SMALL = "moves it by less than 30 %"
    ADDS = "adds to the mismatch"
    FLOOR = "inside the noise floor"
    NEGLIGIBLE = "too small to matter"
    NOT_ENGAGED = "not engaged here"
    UNSUPPORTED = "unsupported here"
    FAILED = "arm failed"


class Effect(TypedDict):
    """A level of a factor: set first, on the candidate as it is, and left out last, of the parity settings.

    verdict: an EffectVerdict, or a word of another release.
    """

    block: str
    factor: str
    level: str
    layer: Layer
    metric: str
    first: Contrast | None
    last: Contrast | None
    share: float | None
    floor: float
    interacts: bool
    verdict: str
    because: str


class NoiseFloor(TypedDict):
    """What cannot be distinguished from zero."""

    value: float
    because: str


class Replay(TypedDict):
    """Recorded tokens, asked for again. recorded: the reference against the recording. arms: each against the
    reference. prefill_against_decode: an engine's own tokens as it decoded them, against a prefill of the same tokens.
    differing: what the reference resolved otherwise than was recorded. not_reported: tokens by arm.
    coverage: how many prompts, completions and tokens_of_first_weights were asked again, of how many."""

    verdict: Verdict
    because: str
    recorded: Mapping[str, Measurement] | None
    arms: Mapping[str, Mapping[str, Measurement]]
    prefill_against_decode: NotRequired[Mapping[str, Mapping[str, Measurement]]]
    differing: Mapping[str, Sequence[Any]]
    not_reported: Mapping[str, int]
    coverage: NotRequired[Mapping[str, Sequence[int]]]


class Block(TypedDict):
    """One migration of a recipe."""

    name: str
    layers: Mapping[str, Verdict]
    noise_floor: Mapping[str, NoiseFloor]
    parity: str | None
    distance: NotRequired[Distance | None]
    replay: NotRequired[Replay]


class MicroBatchFloor(TypedDict):
    """The trainer against itself: the same sequences alone and in their batch."""

    trainer: str
    sequences: int
    tokens: int
    mean_abs: float | None
    median_abs: float | None
    max_abs: float | None
    k3: float | None
    tokens_per_second: float


class Run(TypedDict):
    """What a run took, and where it ran."""

    seconds: float
    set_up_seconds: float
    cell_seconds: float
    cells_run: int
    cells_kept: int
    damaged: NotRequired[Sequence[str]]
    sequences_sampled: int
    sequences_scored: int
    peak_memory_mib: float
    micro_batch_floors: Sequence[MicroBatchFloor]
    provenance: Mapping[str, Any]
