"""What an audit of weight updates reports: which weights sampled which token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.laboratory.study_run import Cost


@dataclass(frozen=True, kw_only=True)
class WeightUpdates:
    """The report of `ablate` with a recipe about weight updates."""

    cases: Sequence[JudgedCase]
    # In sentences: which ways are right, what others leave behind, and what to set or call.
    to_use: Sequence[str]
    equivalence_margin: float
    dtype: str
    cost: Cost
    provenance: Mapping[str, Any]
