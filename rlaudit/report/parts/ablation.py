"""What an ablation reports: its arms, its factors' effects, its blocks and what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rlaudit.diagnosis.distance import ReportedDistance
from rlaudit.diagnosis.effects import NoiseFloor
from rlaudit.diagnosis.replay import Replay
from rlaudit.engines.cells.launch import Failure
from rlaudit.laboratory.factor import Observation
from rlaudit.layers import Verdict
from rlaudit.statistics.measurement.lattice import HeadPrecision
from rlaudit.statistics.measurement.measure import Measurement


@dataclass(frozen=True, kw_only=True)
class Head:
    """The precision in which a head was computed, known from the lattice of its logprobs."""

    lattice: HeadPrecision
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


class ProbedSequence(TypedDict):
    """A completion of `tokens` tokens that was sent as a prompt; sums of absolute differences in nats.

    by_temperature: between the temperature of the arm and 1. from_sampled: from the logprobs of sampling.
    """

    tokens: int
    by_temperature: float
    from_sampled: float


class PromptProbe(TypedDict):
    """What an engine's prompt logprobs are (prompt_probe.py); empty at temperature 1."""

    sequences: NotRequired[Sequence[ProbedSequence]]
    error: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class ArmTrainer:
    """How the trainer of an arm computes."""

    dtype: str
    head_dtype: str
    attention: str
    temperature: Literal["divide", "ignore"]


@dataclass(frozen=True, kw_only=True)
class ArmSemantics:
    """What the logprobs of an arm mean to its trainer."""

    verdict: Verdict
    cause: str | None
    because: str


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The heads of both sides."""

    rollout: Head
    trainer: Head


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One controlled arm. engaged: whether its factor took effect, against the arm it is compared with."""

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
    error: Failure | None
    cell: str
    seconds: float | None
    peak_memory_mib: float | None
    resolved: Mapping[str, Any]
    loaded: Loaded | None = None
    batch_probe: BatchProbe | None = None
    prompt_probe: PromptProbe | None = None
    measurements: Mapping[str, Measurement]
    cached_tokens: int | None = None
    observed: Mapping[str, Observation] | None = None
    semantics: ArmSemantics | None = None
    heads: Heads | None = None


@dataclass(frozen=True, kw_only=True)
class Block:
    """One migration of a recipe."""

    name: str
    layers: Mapping[str, Verdict]
    noise_floor: Mapping[str, NoiseFloor]
    # Parity settings for a file of `vllm serve --config`, as a command, and as a call in Python.
    parity: str | None
    command: str | None = None
    python: str | None = None
    distance: ReportedDistance | None = None
    replay: Replay | None = None
    # Share of tokens whose bytes differ between an arm and its repeat, by the repeat's name.
    repeats: Mapping[str, Measurement] | None = None
