"""What a recording says of its engines' weights: faults, what a dtype hid, and what one engine was never sent.

Equal numbers of updates do not show that an engine lacks what another one was sent last.
Not covered: which tokens show it, tensors without elements that compare, engines of hosts with other clocks. Standard
library only.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlaudit.recording.recorded_engine import RecordedEngine
from rlaudit.recording.recorded_process import Process
from rlaudit.recording.weight_readings import Elements, ReadUpdate, elements_of


@dataclass(frozen=True)
class WeightsOfVersion:
    """What was read of one version of the weights, the number of updates that had ended before."""

    version: int
    # Elements that were sent with another value than the time before.
    changed: int
    # How many of these the engine's dtype rounds to the value it had.
    rounded_away: int
    # The distance of what is held from what was sent, relative to that; None if no tensor compares.
    apart: float | None


@dataclass(frozen=True)
class RecordedWeights:
    """What a recording has of the weights of engines."""

    # What no update explains, each as what follows "the engine's weights".
    faults: tuple[str, ...] = ()
    # Dtypes of the engine's tensors.
    dtypes: frozenset[str] = frozenset()
    # Dtypes in which the trainer computed the policy's logprobs, None for a call whose dtype is unknown.
    trainer_dtypes: frozenset[str | None] = frozenset()
    # The versions that were read after an update, in their order.
    versions: tuple[WeightsOfVersion, ...] = ()


def recorded_weights(
    engines: Sequence[RecordedEngine], trainer_dtypes: frozenset[str | None]
) -> RecordedWeights | None:
    """Return what was read of the weights of engines; None if nothing was. Replicas are one."""
    readings = [reading for engine in engines for reading in engine.weight_readings]
    if not readings:
        return None
    by_version: dict[int, list[ReadUpdate]] = {}
    for engine in engines:
        for update in (update for reading in engine.weight_readings for update in reading.updates):
            version = 0 if engine.served is None else engine.served.version_at(update.at)
            by_version.setdefault(version, []).append(update)
    models = [model for engine in engines for process in engine.processes for model in process.models]
    return RecordedWeights(
        faults=tuple(dict.fromkeys(fault for reading in readings for fault in reading.faults())),
        dtypes=frozenset(dtype for model in models for dtype in model.dtypes),
        trainer_dtypes=trainer_dtypes,
        versions=tuple(_together(version, updates) for version, updates in sorted(by_version.items())),
    )


def _together(version: int, updates: Sequence[ReadUpdate]) -> WeightsOfVersion:
    """Return what the ranks and replicas of one version have in common."""
    apart = [update.apart for update in updates if update.apart is not None]
    changed, rounded_away = (sum(getattr(update, name) for update in updates) for name in ("changed", "rounded_away"))
    return WeightsOfVersion(version, changed, rounded_away, max(apart, default=None))


def never_sent(engines: Sequence[RecordedEngine]) -> Iterator[tuple[RecordedEngine, RecordedEngine, int, int]]:
    """Yield an engine, the one that was sent weights last, how many of these tensors the former never got, of how many.

    Weights are known by a few elements of each tensor as it was sent, in any order and parts. An engine is judged only
    if it was read after its last load: later ones are not written yet.
    """
    for clock in dict.fromkeys(engine.process.clock for engine in engines):
        updated = [engine for engine in engines if engine.process.clock == clock and engine.updates]
        beside = [(engine, process) for engine in updated if (process := _reader(engine)) is not None]
        if not beside:
            continue
        newest, reader = max(beside, key=lambda pair: pair[0].updates[-1].begin)
        last: Elements = {}
        for sent in _sent(reader):
            last.update(sent)
        for engine, process in beside:
            missing = dict(last)
            for sent in _sent(process):
                for name in [name for name, elements in sent.items() if missing.get(name) == elements]:
                    del missing[name]
            if missing:
                yield engine, newest, len(missing), len(last)


def _reader(engine: RecordedEngine) -> Process | None:
    """Return the first process in which an engine's weights were read; None if none was, or if it has loaded since."""
    process = next((process for process in engine.processes if process.weights), None)
    if process is None:
        return None
    last_read = max(reading.load or 0 for reading in process.weights)
    return process if last_read >= max((load.number for load in process.loads), default=0) else None


def _sent(process: Process) -> Iterator[Elements]:
    """Yield the elements of the tensors that were sent before each reading, by name."""
    for reading in process.weights:
        sent = elements_of(process.tensors, reading.sent, reading.values_sent) or {}
        yield {name: elements for name, elements in sent.items() if not math.isnan(array("f", elements)[0])}
