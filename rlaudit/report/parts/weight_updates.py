"""What an audit of weight updates reports: which weights sampled which token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.diagnosis.updates.continuity import Continuity
from rlaudit.diagnosis.updates.lag import LagGroup
from rlaudit.diagnosis.updates.parts import Parts
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.diagnosis.updates.staleness import Staleness
from rlaudit.laboratory.studies.updates.cases import CaseKind
from rlaudit.laboratory.study_run import Cost


@dataclass(frozen=True, kw_only=True)
class UpdateCase:
    """One course of requests and updates on one engine start. transport: what brought the weights and what loaded
    them, as it ran."""

    start: str
    version: str
    path: str
    transport: str | None
    levels: Mapping[str, str]
    name: str
    kind: CaseKind
    mode: str
    clear_cache: bool
    problem: str | None
    clean: bool | None
    in_flight: RequestCount
    around: RequestCount
    lags: Sequence[LagGroup]
    parts: Parts | None
    staleness: Staleness | None
    continuity: Continuity | None
    seconds: float | None
    cell: str
    # Whether it did not run because the release has no such calls.
    unsupported: bool | None = None


@dataclass(frozen=True, kw_only=True)
class WeightUpdates:
    """The report of `ablate` with a recipe about weight updates. to_use: a sentence for each engine on which sequence
    is clean."""

    cases: Sequence[UpdateCase]
    to_use: Sequence[str]
    equivalence_margin: float
    dtype: str
    cost: Cost
    provenance: Mapping[str, Any]
