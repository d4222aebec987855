"""Cases as they would be judged, for tests of what is said about them."""

from dataclasses import replace
from typing import Any

from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.diagnosis.updates.staleness import Staleness
from rlaudit.laboratory.studies.updates.cases import CaseKind
from rlaudit.laboratory.studies.updates.parts_read import HEAD, PartsRead
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.statistics.measurement.contrast import Contrast
from rlaudit.statistics.measurement.measure import Measurement

COUNT = RequestCount(submitted=16, completed=16)
CLEAN = Staleness(Verdict.MATCH, "", 0, None, None, None, 0.1, 1e-3, None)


def read(*old: str) -> PartsRead:
    return PartsRead("1", 3 - len(old), old, (), (), 3, HEAD in old)


def judged(**values: Any) -> JudgedCase:
    """A case as it would be judged: it is clean unless it has a fault."""
    case = {
        "start": "the start", "version": "0.18.1", "path": "reload_weights", "transport": "from disk", "clean": None,
        "levels": {"prefix-caching": "on"}, "name": "the case", "kind": CaseKind.MATRIX, "mode": PauseMode.KEEP,
        "clear_cache": True, "problem": None, "in_flight": COUNT, "around": COUNT, "staleness": CLEAN, "engine": "V1",
        "lags": (), "parts": None, "continuity": None, "seconds": 1.0, "cell": "abc",
    }  # fmt: skip
    found = JudgedCase(**{**case, **values})
    return replace(found, clean=found.ran and not found.faults)


def excess(value: float) -> Contrast:
    values: dict[str, Any] = dict.fromkeys(Contrast.__annotations__)
    values |= {"metric": "k3", "difference": value, "low": value / 2, "high": value * 2, "reliable": True}
    return Contrast(**values)


def measured(value: float, low: float, high: float) -> Measurement:
    values: dict[str, Any] = dict.fromkeys(Measurement.__annotations__)
    return Measurement(**{**values, "value": value, "low": low, "high": high, "reliable": True})


def around(mode: str, clear: bool, verdict: Verdict, size: float, cached: int = 64) -> JudgedCase:
    stale = Staleness(verdict, "because", cached, excess(size), excess(1e-9), None, 0.1, 1e-3, None)
    name = f"mode={mode}, clear_cache={clear}"
    return judged(name=name, mode=PauseMode(mode), clear_cache=clear, staleness=stale)
