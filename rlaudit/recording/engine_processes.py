"""The processes of each engine: the front ends that give it requests, its core, its workers, and what started them.

Several front ends may share an engine (`vllm serve --api-server-count 2`), and one process may have several engines.
vLLM names a configuration when it is made (`instance_id`), and each worker knows the name of its own; the rest is
known by which process started which. Processes of a host that neither assigns may belong to each of its engines.
Not covered: processes of other hosts, whose clocks are others. Standard library only.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlaudit.recording.recorded_process import Call, Process


@dataclass(frozen=True)
class EngineProcesses:
    """One engine that had requests.

    A process that built several engines stands in it with the requests and calls of this one alone (`Process.only`).
    """

    # The process whose configuration it has, a front end or their parent.
    builder: Process
    fronts: tuple[Process, ...]
    # All of them, fronts too.
    processes: tuple[Process, ...]
    # What cannot be assigned to one engine, in sentences.
    missing: tuple[str, ...] = ()

    @property
    def calls(self) -> list[Call]:
        """The calls of its processes, in the order in which they began."""
        return sorted((call for process in self.processes for call in process.calls), key=lambda call: call.begin)

    @property
    def instances(self) -> frozenset[str]:
        """What vLLM calls its configuration."""
        return frozenset(engine.instance for engine in self.builder.engines if engine.instance is not None)


def engines_of(everyone: Sequence[Process]) -> tuple[EngineProcesses, ...]:
    """Return the engines that had requests, in the order in which their front ends began."""
    fronts = [view for process in everyone if _is_front(process) for view in _views(process)]
    grouped: dict[tuple[object, int | None], EngineProcesses] = {}
    for front in fronts:
        builder = parent_server(front, everyone) or front
        key = (builder.file, builder.only)
        engine = grouped.get(key, EngineProcesses(builder, (), ()))
        grouped[key] = replace(engine, fronts=(*engine.fronts, front))
    engines = list(grouped.values())
    served = {engine.builder.file for engine in engines} | {front.file for front in fronts}
    members = [list(_builder_and_fronts(engine)) for engine in engines]
    unknown = {process.file: sum(request.engine is None for request in process.requests) for process in everyone}
    missing: list[list[str]] = [_unplaced(engine, unknown) for engine in engines]
    for process in everyone:
        if process.file in served:
            continue
        places = _places(process, engines, everyone)
        for place in places:
            members[place].append(process)
            if len(places) > 1 and (process.calls or process.loads):
                missing[place].append(
                    f"process {process.pid} may serve each of {len(places)} engines: its updates are counted for each"
                )
    order = {process.file: place for place, process in enumerate(everyone)}
    return tuple(
        replace(
            engine,
            processes=tuple(sorted(processes, key=lambda process: order[process.file])),
            missing=tuple(sentences),
        )
        for engine, processes, sentences in zip(engines, members, missing, strict=True)
    )


def parent_server(process: Process, everyone: Sequence[Process]) -> Process | None:
    """Return the process that started a front end and built its engine; None if the front end built its own.

    An API server builds a configuration, as its parent did, and no worker ever gets it.
    """
    if not process.engines:
        return None
    parent = next((other for other in everyone if other.pid == process.parent and _is_beside(other, process)), None)
    if parent is None or _is_front(parent):
        return None
    instances = {worker.instance for other in everyone for worker in other.workers} - {None}
    has_workers = [any(engine.instance in instances for engine in candidate.engines) for candidate in (process, parent)]
    return parent if has_workers == [False, True] else None


def _is_beside(one: Process, other: Process) -> bool:
    """Return whether the process ids of two processes are comparable: containers of a host share only its clock."""
    return one.clock == other.clock and one.host == other.host


def _is_front(process: Process) -> bool:
    return bool(process.requests or process.steps.tokens)


def _builder_and_fronts(engine: EngineProcesses) -> tuple[Process, ...]:
    return engine.fronts if engine.builder in engine.fronts else (engine.builder, *engine.fronts)


def _views(process: Process) -> Iterator[Process]:
    """Yield a front end once for each engine that it sent requests to."""
    numbers = sorted({request.engine for request in process.requests if request.engine is not None})
    if len(process.engines) < 2 or not numbers:
        yield process
        return
    for only in numbers:
        calls = tuple(call for call in process.calls if call.engine in (None, only))
        others = {call.number for call in process.calls} - {call.number for call in calls}
        engines = tuple(engine for engine in process.engines if engine.number == only)
        instances = {None, *(engine.instance for engine in engines)}
        requests = tuple(request for request in process.requests if request.engine == only)
        counts = Counter(request.sampling for request in requests)
        totals, is_whole = process.totals, False
        if totals is not None:
            is_whole = totals.requests == len(process.requests)
            by_sampling = {number: count for number, count in counts.items() if number is not None}
            totals = replace(totals, by_sampling=by_sampling)
        yield replace(
            process,
            only=only,
            engines=engines,
            calls=calls,
            loads=tuple(load for load in process.loads if load.inside not in others),
            workers=tuple(worker for worker in process.workers if worker.instance in instances),
            sampling={number: parameters for number, parameters in process.sampling.items() if number in counts},
            totals=totals if is_whole else None,
            requests=requests,
            sequences=tuple(sequence for sequence in process.sequences if sequence.engine == only),
            steps=process.steps.of_engine(only),
        )


def _unplaced(engine: EngineProcesses, unknown: Mapping[Path, int]) -> list[str]:
    """Return what of its front ends may be of another engine, in sentences. unknown: requests of each process."""
    sentences = []
    for front in (front for front in engine.fronts if front.only is not None):
        if unknown[front.file]:
            requests = unknown[front.file]
            sentences.append(f"{requests} requests of process {front.pid} may be of any of its engines: left out")
        unplaced = sum(load.inside is None for load in front.loads)
        if unplaced:
            sentences.append(
                f"process {front.pid} loaded weights {unplaced} times without a call that names the engine: they are "
                "counted for each of its engines"
            )
    return sentences


def _places(process: Process, engines: Sequence[EngineProcesses], everyone: Sequence[Process]) -> list[int]:
    """Return which engines a process, no front end itself, belongs to: one, none, or each that it may be of."""
    near = [place for place, engine in enumerate(engines) if engine.builder.clock == process.clock]
    instances = _instances(process, everyone)
    if instances:
        by_name = [place for place in near if not instances.isdisjoint(engines[place].instances)]
        all_instances = {engine.instance for other in everyone for engine in other.engines}
        if by_name or not instances.isdisjoint(all_instances):
            return by_name  # none: of an engine that had no request
    if len(near) == 1:
        return near
    parents = {other.pid: other.parent for other in everyone if _is_beside(other, process)}
    pids = [{other.pid for other in _builder_and_fronts(engine) if _is_beside(other, process)} for engine in engines]
    above, seen = process.parent, {process.pid}
    while above is not None and above not in seen:
        below = [place for place in near if above in pids[place]]
        if below:
            return below
        seen.add(above)
        above = parents.get(above)
    return near


def _instances(process: Process, everyone: Sequence[Process]) -> set[str]:
    """Return the names of the configurations of its workers, its own or those of processes that it started."""
    beside = [other for other in everyone if _is_beside(other, process)]
    below, seen = [process], {process.pid}
    while below:
        instances = {worker.instance for other in below for worker in other.workers if worker.instance is not None}
        if instances:
            return instances
        pids = {other.pid for other in below}
        below = [other for other in beside if other.parent in pids and other.pid not in seen]
        seen.update(other.pid for other in below)
    return set()
