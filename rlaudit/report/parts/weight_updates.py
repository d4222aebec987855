"""What an audit of weight updates reports: which weights sampled which token."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from rlaudit.inspection.finding import Severity
from rlaudit.layers import Verdict
from rlaudit.report.parts.measured import Contrast, Measurement


class UpdateRequests(TypedDict):
    """How requests ended. leaked_tokens came while the engine said that it was paused."""

    submitted: int
    completed: int
    aborted: int
    truncated: int
    duplicated: int
    lost: int
    failed: int
    leaked_tokens: int


class UpdateReadBack(TypedDict):
    """What the worker was found to hold: by the bytes of its parameters and by what its layers answer.

    old: checkpoint names of tensors that are of another version than the believed one; of_no_version: of those that
    are of none. checksums: sha256 of each parameter.
    """

    believed: str
    parameters: int
    new: int
    new_by_bytes: int
    new_by_answer: int
    old: Sequence[str]
    of_no_version: NotRequired[Sequence[str]]
    unread: int
    old_behind_new_bytes: Sequence[str]
    logits: str | None
    checksums: Mapping[str, str]


class K3Under(TypedDict):
    """k3 of tokens of a cold cache under the new weights, the old ones, and the mixture that was read back."""

    new: Measurement | None
    old: Measurement | None
    read: Measurement | None


class UpdateParts(TypedDict):
    """Which parameters an update reached."""

    verdict: Verdict
    because: str
    sure: str
    read_back: UpdateReadBack | None
    k3_under: K3Under


class Decay(Measurement):
    """Stale keys and values at one distance from the cached blocks."""

    tokens_from_cache: str


class UpdateStaleness(TypedDict):
    """Whether tokens after an update rest on keys and values from before it.

    excess: k3 after the update less k3 of a cold cache. control: warm less cold, both after it. flight: tokens after
    the update of requests that were in flight. distance: k3 between the two versions.
    """

    verdict: Verdict
    because: str
    cached_tokens: int
    excess: Contrast | None
    control: Contrast | None
    unshared: Measurement | None
    flight: Measurement | None
    distance: float | None
    margin: float | None
    decay: Sequence[Decay]
    flight_margin: float | None


class Update(TypedDict):
    """One update of the weights."""

    case: str
    mode: str
    clear_cache: bool
    to: str
    in_flight: int
    error: str | None
    pause_seconds: float
    load_seconds: float
    resume_seconds: float | None


class LagGroup(TypedDict):
    """Tokens in flight of one version lag."""

    lag: int
    tokens: int
    right_weights: Mapping[str, Measurement]
    trainer_weights: Mapping[str, Measurement]


class Continuity(TypedDict):
    """Whether requests went on where they were."""

    verdict: Verdict
    because: str
    continued: int
    repeated: int


class UpdateCase(TypedDict):
    """One course of requests and updates on one engine start. transport: what brought the weights and what loaded
    them, as it ran."""

    start: str
    version: str
    path: str
    transport: NotRequired[str | None]
    levels: Mapping[str, str]
    name: str
    kind: Literal["matrix", "in a row", "path", "planted"]
    mode: str
    clear_cache: bool
    problem: str | None
    clean: bool | None
    in_flight: UpdateRequests
    around: UpdateRequests
    updates: Sequence[Update]
    lags: Sequence[LagGroup]
    parts: UpdateParts | None
    staleness: UpdateStaleness | None
    continuity: Continuity | None
    seconds: float | None
    cell: str


class Conclusion(TypedDict):
    """What was found, how sure it is, and what to do next."""

    rule: str
    severity: Severity
    found: str
    sure: str
    next: str
    reproduce: str | None


class Recommendation(TypedDict):
    """Calls to use on one engine; no code where nothing that was tried is clean."""

    version: str
    levels: str
    code: str | None
    because: str


class UpdateCost(TypedDict):
    """What the run took."""

    seconds: float
    cells_run: int
    cells_kept: int
    damaged: NotRequired[Sequence[str]]
    peak_memory_mib: float


class WeightUpdates(TypedDict):
    """Of `ablate` with a recipe about weight updates."""

    cases: Sequence[UpdateCase]
    conclusions: Sequence[Conclusion]
    recommendations: Sequence[Recommendation]
    equivalence_margin: float
    dtype: str
    cost: UpdateCost
    provenance: Mapping[str, Any]
