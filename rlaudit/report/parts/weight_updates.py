"""What an audit of weight updates reports: which weights sampled which token."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

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
    are of none. unread: parameters that neither tells.
    """

    believed: str
    parameters: int
    new: int
    new_by_bytes: int
    new_by_answer: int
    old: Sequence[str]
    of_no_version: Sequence[str]
    unread: Sequence[str]
    old_behind_new_bytes: Sequence[str]
    logits: str | None


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
    flight_margin: float | None


class LagGroup(TypedDict):
    """Tokens in flight of one version lag."""

    lag: int
    tokens: int
    right_weights: Mapping[str, Measurement]
    trainer_weights: Mapping[str, Measurement]


class Continuity(TypedDict):
    """Whether requests went on where they were. after: k3 of their tokens after the update."""

    verdict: Verdict
    because: str
    continued: int
    after: Measurement | None


class UpdateCase(TypedDict):
    """One course of requests and updates on one engine start. transport: what brought the weights and what loaded
    them, as it ran."""

    start: str
    version: str
    path: str
    transport: str | None
    levels: Mapping[str, str]
    name: str
    kind: Literal["matrix", "in a row", "path"]
    mode: str
    clear_cache: bool
    problem: str | None
    clean: bool | None
    in_flight: UpdateRequests
    around: UpdateRequests
    lags: Sequence[LagGroup]
    parts: UpdateParts | None
    staleness: UpdateStaleness | None
    continuity: Continuity | None
    seconds: float | None
    cell: str


class UpdateCost(TypedDict):
    """What the run took."""

    seconds: float
    cells_run: int
    cells_kept: int
    damaged: Sequence[str]
    peak_memory_mib: float


class WeightUpdates(TypedDict):
    """The report of `ablate` with a recipe about weight updates. to_use: a sentence for each engine on which sequence
    is clean."""

    cases: Sequence[UpdateCase]
    to_use: Sequence[str]
    equivalence_margin: float
    dtype: str
    cost: UpdateCost
    provenance: Mapping[str, Any]
