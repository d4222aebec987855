"""The engines of a recording: each with the processes that are its own, and with how its requests were sampled."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rlaudit.recording.engine_processes import parent_server
from rlaudit.recording.recorded_process import Engine, Process
from rlaudit.recording.reused_blocks import Reused, reused_blocks
from rlaudit.recording.weight_readings import WeightReadings, weight_readings
from rlaudit.recording.weight_updates import ServedEngine, Update

# Programs give each request the room that its prompt leaves: that makes no other kind of sampling.
_OF_A_REQUEST = frozenset({"max_tokens", "min_tokens"})


@dataclass(frozen=True)
class Sampled:
    """One kind of sampling, and how many requests used it; None if no count was written.

    parameters: those of the most requests of the kind, which stand in `line` of `process`. most: the least and the
    greatest max_tokens; None if a request had none.
    """

    parameters: Mapping[str, Any]
    requests: int | None
    process: Process
    line: int
    most: tuple[int, int] | None


@dataclass(frozen=True)
class RecordedEngine:
    """An engine as it was built."""

    # The one that built it.
    process: Process
    engine: Engine
    # None: it had no request.
    served: ServedEngine | None = None
    # How many were built alike, of which this is the first, and those of them that other processes built.
    replicas: int = 1
    others: tuple["RecordedEngine", ...] = ()

    @property
    def processes(self) -> tuple[Process, ...]:
        """What built it, gave it requests and holds its weights."""
        return (self.process,) if self.served is None else self.served.engine.processes

    @property
    def everywhere(self) -> tuple["RecordedEngine", ...]:
        """This one and the others that were built alike."""
        return (self, *self.others)

    @property
    def all_processes(self) -> tuple[Process, ...]:
        """The processes of all that were built alike, each once."""
        return tuple({process.file: process for replica in self.everywhere for process in replica.processes}.values())

    @property
    def all_updates(self) -> tuple[Update, ...]:
        """The updates of all that were built alike."""
        return tuple(update for replica in self.everywhere for update in replica.updates)

    @property
    def started(self) -> bool:
        """Whether its configuration was resolved."""
        return self.engine.error is None and self.engine.effective is not None

    @property
    def updates(self) -> tuple[Update, ...]:
        """The updates of its weights."""
        return () if self.served is None else self.served.updates

    @cached_property
    def reused(self) -> tuple[Reused, ...]:
        """What its sequences took from the prefix cache."""
        return () if self.served is None else tuple(reused_blocks(self.served).values())

    @property
    def tokens_since(self) -> int:
        """How many tokens were sampled after the last update; of all if there was none."""
        end = self.updates[-1].end if self.updates else -math.inf
        return 0 if end is None or self.served is None else self.served.steps.tokens_between(end, math.inf)

    @property
    def sampled(self) -> tuple[Sampled, ...]:
        """How its requests were sampled, what most requests used first."""
        kinds: dict[str, list[_Counted]] = {}
        for front in (self.process,) if self.served is None else self.served.fronts:
            counts = None if front.totals is None else front.totals.by_sampling
            kept = Counter(request.sampling for request in front.requests)
            for number, parameters in front.sampling.items():
                # The last count of a process that was killed is seconds old; its lines may know of more.
                count = None if counts is None else max(counts.get(number, 0), kept[number])
                kinds.setdefault(_kind(parameters), []).append(_Counted(front, number, count))
        sampled = [_sampled(alike) for alike in kinds.values()]
        return tuple(sorted(sampled, key=lambda kind: -(kind.requests or 0)))

    @cached_property
    def weight_readings(self) -> tuple[WeightReadings, ...]:
        """The weights as they were read, in the processes of all that were built alike."""
        model = (self.engine.effective or {}).get("model_config")
        hf_config = model.get("hf_config") if isinstance(model, Mapping) else None
        is_tied = isinstance(hf_config, Mapping) and hf_config.get("tie_word_embeddings") is True
        pairs = ((process, replica.processes) for replica in self.everywhere for process in replica.processes)
        readings = tuple(filter(None, (weight_readings(process, beside, is_tied) for process, beside in pairs)))
        parallel = (self.engine.effective or {}).get("parallel_config")
        if isinstance(parallel, Mapping) and parallel.get("enable_eplb"):
            for reading in readings:  # the engine moves experts by itself
                reading.unannounced.clear()
        return readings

    @property
    def worker_classes(self) -> tuple[str, ...]:
        """The classes of its workers."""
        named = (worker.class_name for process in self.processes for worker in process.workers)
        return tuple(dict.fromkeys(name for name in named if name is not None))


def recorded_engines(processes: Sequence[Process], served: Sequence[ServedEngine]) -> tuple[RecordedEngine, ...]:
    """Return the engines in the order in which they were built; those that were built alike are one."""
    by_builder = {(known.engine.builder.file, known.engine.builder.only): known for known in served}
    engines: list[RecordedEngine] = []
    for process in processes:
        if parent_server(process, processes) is not None:
            continue  # its configuration is its parent's
        for engine in process.engines:
            own = by_builder.get((process.file, engine.number)) or by_builder.get((process.file, None))
            built = RecordedEngine(process if own is None else own.engine.builder, engine, own)
            alike = next((place for place, engine in enumerate(engines) if _alike(engine, built)), None)
            if alike is None:
                engines.append(built)
                continue
            first = engines[alike]
            # Engines of one process that cannot be distinguished have the same requests and updates.
            places = {(engine.process.file, engine.process.only) for engine in first.everywhere}
            is_new = (built.process.file, built.process.only) not in places
            others = (*first.others, built) if is_new else first.others
            engines[alike] = replace(first, replicas=first.replicas + 1, others=others)
    return tuple(engines)


@dataclass(frozen=True)
class _Counted:
    """Sampling parameters of one front end, and how many requests had them; None if no count was written."""

    front: Process
    number: int
    requests: int | None


def _sampled(alike: Sequence[_Counted]) -> Sampled:
    most = max(alike, key=lambda counted: counted.requests or 0)
    room = [counted.front.sampling[counted.number].get("max_tokens") for counted in alike]
    limits = [counted for counted in room if isinstance(counted, int)]
    counts = [counted.requests for counted in alike if counted.requests is not None]
    return Sampled(
        most.front.sampling[most.number],
        sum(counts) if len(counts) == len(alike) else None,
        most.front,
        most.front.sampling_lines[most.number],
        (min(limits), max(limits)) if len(limits) == len(room) else None,
    )


def _alike(one: RecordedEngine, other: RecordedEngine) -> bool:
    return (
        one.engine.class_name == other.engine.class_name
        and one.engine.written == other.engine.written
        and one.engine.error == other.engine.error
        and one.process.versions == other.process.versions
        and one.process.environment.get("VLLM_USE_V1") == other.process.environment.get("VLLM_USE_V1")
    )


def _kind(parameters: Mapping[str, Any]) -> str:
    """Return the same text for parameters that differ in nothing but a request's room."""
    return json.dumps({name: value for name, value in parameters.items() if name not in _OF_A_REQUEST}, sort_keys=True)
