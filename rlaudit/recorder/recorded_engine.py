"""The engines of a recording: each with the processes that are its own, and with how its requests were sampled."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlaudit.recorder.recording import Engine, Process, Recording
from rlaudit.recorder.weight_updates import Update, served_weights


@dataclass(frozen=True)
class Sampled:
    """Distinct sampling parameters, and how many requests used them; None if no count was written."""

    parameters: Mapping[str, Any]
    requests: int | None
    line: int


@dataclass(frozen=True)
class RecordedEngine:
    """An engine. process: what built it. processes: that one, and those that hold its weights. replicas: how many were
    built alike, of which this is the first.
    """

    process: Process
    engine: Engine
    processes: tuple[Process, ...]
    updates: tuple[Update, ...]
    replicas: int = 1

    @property
    def started(self) -> bool:
        """Whether its configuration was resolved."""
        return self.engine.error is None and self.engine.effective is not None

    @property
    def sampled(self) -> tuple[Sampled, ...]:
        """Its sampling parameters, those of the most requests first."""
        counts = {} if self.process.totals is None else self.process.totals.by_sampling
        found = [
            Sampled(parameters, counts.get(number), self.process.sampling_lines[number])
            for number, parameters in self.process.sampling.items()
        ]
        return tuple(sorted(found, key=lambda one: -(one.requests or 0)))

    @property
    def worker_classes(self) -> tuple[str, ...]:
        """The classes of its workers."""
        named = (worker.class_name for process in self.processes for worker in process.workers)
        return tuple(dict.fromkeys(name for name in named if name is not None))


def recorded_engines(recording: Recording) -> tuple[RecordedEngine, ...]:
    """Return the engines in the order in which they were built; those that were built alike are one."""
    served = {one.front.file: one for one in served_weights(recording)}
    found: list[RecordedEngine] = []
    for process in recording.processes:
        own = served.get(process.file)
        processes = (process,) if own is None else own.processes
        updates = () if own is None else own.updates
        for engine in process.engines:
            alike = next((place for place, one in enumerate(found) if _alike(one, process, engine)), None)
            if alike is None:
                found.append(RecordedEngine(process, engine, processes, updates))
            else:
                found[alike] = replace(found[alike], replicas=found[alike].replicas + 1)
    return tuple(found)


def _alike(one: RecordedEngine, process: Process, engine: Engine) -> bool:
    return (
        one.engine.class_name == engine.class_name
        and one.engine.written == engine.written
        and one.engine.error == engine.error
        and one.process.versions == process.versions
        and one.process.environment.get("VLLM_USE_V1") == process.environment.get("VLLM_USE_V1")
    )
