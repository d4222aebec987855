"""What a recording says of an engine's weights beside its tokens: their faults, and what its dtype hid of each update.

Not covered: which tokens show it (`diagnosis/weights_and_tokens.py`). Standard library only.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rlaudit.recorder.recorded_engine import RecordedEngine
from rlaudit.recorder.weight_readings import ReadUpdate


@dataclass(frozen=True)
class WeightsOfVersion:
    """What was read of one version of the weights, the number of updates that had ended before.

    changed: elements that were sent with another value than the time before. rounded_away: those of them that the
    engine's dtype rounds to the value it had. apart: how far what is held is from what was sent, relative to that; None
    if no tensor compares.
    """

    version: int
    changed: int
    rounded_away: int
    apart: float | None


@dataclass(frozen=True)
class RecordedWeights:
    """faults: what no update explains, each as what follows "the engine's weights". dtypes: in which the engine holds
    them. trainer_dtypes: in which the trainer computed the policy's logprobs, None for a call of which that is unknown.
    versions: those that were read after an update, in their order.
    """

    faults: tuple[str, ...] = ()
    dtypes: frozenset[str] = frozenset()
    trainer_dtypes: frozenset[str | None] = frozenset()
    versions: tuple[WeightsOfVersion, ...] = ()


def recorded_weights(
    engines: Sequence[RecordedEngine], trainer_dtypes: frozenset[str | None]
) -> RecordedWeights | None:
    """Return what the weights of engines were found to be; None if nothing was read. Replicas are one."""
    readings = [reading for one in engines for reading in one.weight_readings]
    if not readings:
        return None
    by_version: dict[int, list[ReadUpdate]] = {}
    for one in engines:
        ends = [math.inf if update.end is None else update.end for update in one.updates]
        for reading in one.weight_readings:
            for update in reading.updates:
                by_version.setdefault(bisect_right(ends, update.at), []).append(update)
    models = [model for one in engines for process in one.processes for model in process.models]
    return RecordedWeights(
        faults=tuple(dict.fromkeys(fault for reading in readings for fault in reading.faults())),
        dtypes=frozenset(dtype for model in models for dtype in model.dtypes),
        trainer_dtypes=trainer_dtypes,
        versions=tuple(_together(version, updates) for version, updates in sorted(by_version.items())),
    )


def _together(version: int, updates: Sequence[ReadUpdate]) -> WeightsOfVersion:
    """Return what the ranks and replicas of one version have in common."""
    apart = [one.apart for one in updates if one.apart is not None]
    changed, rounded_away = (sum(getattr(one, name) for one in updates) for name in ("changed", "rounded_away"))
    return WeightsOfVersion(version, changed, rounded_away, max(apart, default=None))
