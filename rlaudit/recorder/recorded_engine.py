"""The engines of a recording: each with the processes that are its own, and with how its requests were sampled."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rlaudit.recorder.recording import Engine, Process, Recording
from rlaudit.recorder.weight_readings import WeightReadings, weight_readings
from rlaudit.recorder.weight_updates import ServedWeights, Update, served_weights

# Programs give each request the room that its prompt leaves: that makes no other kind of sampling.
_OF_A_REQUEST = frozenset({"max_tokens", "min_tokens"})


@dataclass(frozen=True)
class Sampled:
    """One kind of sampling, and how many requests used it; None if no count was written.

    parameters: those of the most requests of the kind, which stand in `line`. most: the least and the greatest
    max_tokens; None if a request had none.
    """

    parameters: Mapping[str, Any]
    requests: int | None
    line: int
    most: tuple[int, int] | None


@dataclass(frozen=True)
class RecordedEngine:
    """An engine. process: what built it. processes: that one, and those that hold its weights. replicas: how many were
    built alike, of which this is the first; others: those of them that other processes built.
    tokens_since: how many were sampled after the last update; of all if there was none.
    """

    process: Process
    engine: Engine
    processes: tuple[Process, ...]
    updates: tuple[Update, ...]
    tokens_since: int = 0
    replicas: int = 1
    others: tuple["RecordedEngine", ...] = ()

    @property
    def everywhere(self) -> tuple["RecordedEngine", ...]:
        """This one and the others that were built alike."""
        return (self, *self.others)

    @property
    def all_processes(self) -> tuple[Process, ...]:
        """The processes of all that were built alike, each once."""
        return tuple({process.file: process for one in self.everywhere for process in one.processes}.values())

    @property
    def all_updates(self) -> tuple[Update, ...]:
        """The updates of all that were built alike."""
        return tuple(update for one in self.everywhere for update in one.updates)

    @property
    def started(self) -> bool:
        """Whether its configuration was resolved."""
        return self.engine.error is None and self.engine.effective is not None

    @property
    def sampled(self) -> tuple[Sampled, ...]:
        """How its requests were sampled, what most requests used first."""
        counts = {} if self.process.totals is None else self.process.totals.by_sampling
        kinds: dict[str, list[int]] = {}
        for number, parameters in self.process.sampling.items():
            kinds.setdefault(_kind(parameters), []).append(number)
        found = [self._sampled(numbers, counts) for numbers in kinds.values()]
        return tuple(sorted(found, key=lambda one: -(one.requests or 0)))

    @cached_property
    def weight_readings(self) -> tuple[WeightReadings, ...]:
        """What the weights were found to be, in the processes of all that were built alike, where they were read."""
        model = (self.engine.effective or {}).get("model_config")
        hf_config = model.get("hf_config") if isinstance(model, Mapping) else None
        is_tied = isinstance(hf_config, Mapping) and hf_config.get("tie_word_embeddings") is True
        found = [
            weight_readings(process, one.processes, is_tied) for one in self.everywhere for process in one.processes
        ]
        read = tuple(one for one in found if one is not None)
        parallel = (self.engine.effective or {}).get("parallel_config")
        if isinstance(parallel, Mapping) and parallel.get("enable_eplb"):
            for one in read:  # the engine moves experts by itself
                one.unannounced.clear()
        return read

    def _sampled(self, numbers: Sequence[int], counts: Mapping[int, int]) -> Sampled:
        most = max(numbers, key=lambda number: counts.get(number, 0))
        room = [self.process.sampling[number].get("max_tokens") for number in numbers]
        known = [one for one in room if isinstance(one, int)]
        return Sampled(
            self.process.sampling[most],
            sum(counts.get(number, 0) for number in numbers) if counts else None,
            self.process.sampling_lines[most],
            (min(known), max(known)) if len(known) == len(room) else None,
        )

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
        since = 0 if own is None else _tokens_since(own)
        for engine in process.engines:
            built = RecordedEngine(process, engine, processes, updates, since)
            alike = next((place for place, one in enumerate(found) if _alike(one, process, engine)), None)
            if alike is None:
                found.append(built)
                continue
            first = found[alike]
            # Those of one process have one front end here: what is known of it is known of both.
            is_new = process.file not in {one.process.file for one in first.everywhere}
            others = (*first.others, built) if is_new else first.others
            found[alike] = replace(first, replicas=first.replicas + 1, others=others)
    return tuple(found)


def _tokens_since(own: ServedWeights) -> int:
    end = own.updates[-1].end if own.updates else -math.inf
    return 0 if end is None else own.steps.tokens_between(end, math.inf)


def _alike(one: RecordedEngine, process: Process, engine: Engine) -> bool:
    return (
        one.engine.class_name == engine.class_name
        and one.engine.written == engine.written
        and one.engine.error == engine.error
        and one.process.versions == process.versions
        and one.process.environment.get("VLLM_USE_V1") == process.environment.get("VLLM_USE_V1")
    )


def _kind(parameters: Mapping[str, Any]) -> str:
    """Return the same text for parameters that differ in nothing but a request's room."""
    return json.dumps({name: value for name, value in parameters.items() if name not in _OF_A_REQUEST}, sort_keys=True)
