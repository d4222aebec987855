"""Updates of an engine's weights: what brought them, when, in which order, and what was sampled meanwhile.

Covered: tensors given to `load_weights`, in however many calls and processes; calls that move weights without it; the
pause, the clearing of the prefix cache and the resumption around them; the version of the weights at any moment, by the
engine core's own clock. Version 0 is what the engine started with.
Not covered: weights that change without any call (memory shared with a trainer), and adapters.
Standard library only: `inspect` asks for the protocol, too.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from operator import attrgetter
from typing import TypeVar

from rlaudit.recording.engine_processes import EngineProcesses, engines_of
from rlaudit.recording.recorded_process import Call, Load, Process
from rlaudit.recording.sampled_steps import SampledSteps, together

# Methods of workers that bring weights, also if no `load_weights` is seen below them (CUDA IPC, a transfer engine).
MOVING = frozenset(("reload_weights", "start_weight_update", "update_weights", "finish_weight_update"))
PAUSING = frozenset(("pause_generation", "pause_scheduler"))
RESUMING = frozenset(("resume_generation", "resume_scheduler"))
CLEARING = "reset_prefix_cache"
# The weights after `sleep(level=2)` are gone, and a load has to follow.
AROUND = frozenset((*PAUSING, *RESUMING, CLEARING, "sleep", "wake_up", "abort_requests"))

Begun = TypeVar("Begun", Call, Load)


@dataclass(frozen=True)
class Update:
    """One update. begin, end: monotonic clock; end is None for one that was not seen to end.

    tensors: how many were loaded, 0 if none were seen. how: what brought them, in order.
    pause: the mode that generation was paused with, "" if the call named none, None without a pause.
    clear_cache: the pause's argument; None if it had none. reset: whether the prefix cache was reset after the update
    began and before the next token; False also if the engine refused, None if it may have (`emptied`).
    order: the calls from the pause, or the first load, to the next token. in_flight: requests that the engine held.
    error: of a load or a call that failed.
    """

    begin: float
    end: float | None
    tensors: int
    how: tuple[str, ...]
    pause: str | None
    clear_cache: bool | None
    reset: bool | None
    order: tuple[str, ...]
    in_flight: int | None
    error: str | None


@dataclass(frozen=True, eq=False)
class ServedEngine:
    """An engine that had requests, with the updates of its weights."""

    engine: EngineProcesses
    # Each with the tokens that all its front ends were given meanwhile.
    updates: tuple[Update, ...]
    # What is not known, in sentences.
    missing: tuple[str, ...]

    @property
    def fronts(self) -> tuple[Process, ...]:
        """The front ends that give it requests."""
        return self.engine.fronts

    @cached_property
    def steps(self) -> SampledSteps:
        """The steps of all its front ends."""
        return together([front.steps for front in self.fronts])

    def version_at(self, clock: float) -> int:
        """Return how many updates had ended at a moment."""
        return bisect_right(self._ends, clock)

    def next_begin(self, clock: float) -> float:
        """Return when the next update begins after a moment; infinity for none."""
        place = bisect_right(self._begins, clock)
        return self._begins[place] if place < len(self._begins) else math.inf

    @cached_property
    def first_sampled(self) -> int:
        """The version of the first token: 0, or 1 for a trainer that loads its weights before it samples."""
        first = self.steps.first_after(-math.inf)
        return 0 if first is None else self.version_at(first)

    @cached_property
    def _begins(self) -> list[float]:
        return [update.begin for update in self.updates]

    @cached_property
    def _ends(self) -> list[float]:
        return [math.inf if update.end is None else update.end for update in self.updates]


def served_engines(processes: Sequence[Process]) -> tuple[ServedEngine, ...]:
    """Return the engines of a recording that had requests."""
    served = []
    for engine in engines_of(processes):
        missing = [*engine.missing, *(sentence for front in engine.fronts for sentence in front.steps_missing)]
        others = sum(process.clock != engine.builder.clock for process in processes if process.loads)
        if others:
            missing.append(
                f"{engine.fronts[0].file.name}: {others} processes of other hosts loaded weights: their clocks are "
                "others, and the versions of the weights are those of this host alone"
            )
        # A reset is in time if it comes before the next token, whichever front end that is for.
        updates = tuple(_updates(engine, together([front.steps for front in engine.fronts])))
        served.append(ServedEngine(engine, updates, tuple(missing)))
    return tuple(served)


@dataclass(frozen=True)
class _Moved:
    """Weights that moved in one process without a break. names: of tensors, in order. how: what brought them."""

    process: Process
    begin: float
    end: float
    names: tuple[str, ...]
    how: tuple[str, ...]
    in_flight: int | None
    error: str | None


@dataclass(frozen=True)
class _Timeline:
    """The calls of processes with one clock, in order; loads: all of theirs, with the names of their tensors.

    paused: for each call the pause that nothing had resumed before it.
    """

    calls: tuple[Call, ...]
    begins: tuple[float, ...]
    loads: tuple[tuple[float, tuple[str, ...]], ...]
    paused: tuple[Call | None, ...]
    steps: SampledSteps

    def between(self, begin: float, end: float) -> tuple[Call, ...]:
        """Return the calls that begin in [begin, end)."""
        return self.calls[bisect_left(self.begins, begin) : bisect_left(self.begins, end)]

    def names_loaded(self, begin: float, end: float) -> tuple[str, ...]:
        """Return the names of the tensors whose load began in [begin, end]."""
        first = bisect_left(self.loads, (begin,))
        names: dict[str, None] = {}
        for at, loaded in self.loads[first:]:
            if at > end:
                break
            names.update(dict.fromkeys(loaded))
        return tuple(names)

    def pause_at(self, clock: float) -> Call | None:
        """Return the first pause before a moment that nothing has resumed."""
        return self.paused[bisect_left(self.begins, clock)]


def _timeline(engine: EngineProcesses, steps: SampledSteps) -> _Timeline:
    calls = engine.calls
    loads = sorted((load.begin, _names(process, load)) for process in engine.processes for load in process.loads)
    paused: list[Call | None] = [None]
    for call in calls:
        if call.name in PAUSING:
            # The engine core's own call follows the front end's, which has the arguments as they were written.
            paused.append(paused[-1] or call)
        else:
            paused.append(None if call.name in RESUMING else paused[-1])
    return _Timeline(tuple(calls), tuple(call.begin for call in calls), tuple(loads), tuple(paused), steps)


def _updates(engine: EngineProcesses, steps: SampledSteps) -> Iterator[Update]:
    timeline = _timeline(engine, steps)
    moved = sorted(
        (move for process in engine.processes for move in _moved(process, timeline)), key=attrgetter("begin")
    )
    groups: list[list[_Moved]] = []
    for move in moved:
        if groups and _belongs(move, groups[-1], steps):
            groups[-1].append(move)
        else:
            groups.append([move])
    for parts, following in zip_longest(groups, groups[1:]):
        yield _update(parts, timeline, math.inf if following is None else following[0].begin)


def _belongs(move: _Moved, parts: Sequence[_Moved], steps: SampledSteps) -> bool:
    """Return whether weights that moved are of the same update as those of other processes before them."""
    end = max(part.end for part in parts)
    if move.begin <= end:
        return True
    again = any(part.process is move.process and not set(part.names).isdisjoint(move.names) for part in parts)
    return not again and not steps.tokens_between(end, move.begin)


def _moved(process: Process, timeline: _Timeline) -> Iterator[_Moved]:
    """Yield what moved in one process without a break: loads, and calls that move weights.

    A break is a name that repeats, or another call if tokens came in between.
    """
    moves: list[_Moved] = []
    names: set[str] = set()
    end = -math.inf
    for move in sorted((*_of_loads(process), *_of_calls(process, timeline)), key=attrgetter("begin")):
        if moves and move.begin > end and _ends(moves, names, end, move, timeline):
            yield _joined(moves)
            moves, names = [], set()
        moves.append(move)
        names.update(move.names)
        end = max(end, move.end) if len(moves) > 1 else move.end
    if moves:
        yield _joined(moves)


def _ends(moves: Sequence[_Moved], names: set[str], end: float, move: _Moved, timeline: _Timeline) -> bool:
    if not names.isdisjoint(move.names):
        return True
    if not timeline.steps.tokens_between(end, move.begin):
        return False
    if not names or not move.names:
        # Calls without tensors: only a protocol of several calls says that tokens between them are no end.
        how = {part.how[0] for part in moves}
        begun = "start_weight_update" in how and "finish_weight_update" not in how
        return not begun or move.how[0] == "start_weight_update"
    return any(
        call.name in AROUND
        or (call.method is not None and not timeline.names_loaded(call.begin, call.end or call.begin))
        for call in timeline.between(end, move.begin)
    )


def _joined(moves: Sequence[_Moved]) -> _Moved:
    """Return moves without a break as one."""
    return _Moved(
        process=moves[0].process,
        begin=moves[0].begin,
        end=max(part.end for part in moves),
        names=tuple(dict.fromkeys(name for part in moves for name in part.names)),
        how=tuple(dict.fromkeys(how for part in moves for how in part.how)),
        in_flight=next((part.in_flight for part in moves if part.in_flight is not None), None),
        error=next((part.error for part in moves if part.error), None),
    )


def _with_ends(begun: Sequence[Begun]) -> Iterator[tuple[Begun, float]]:
    """Yield each with its end. If no line has it, it ended before the next began; the last one, never."""
    in_order = sorted(begun, key=attrgetter("begin"))
    for event, following in zip_longest(in_order, in_order[1:]):
        unknown = math.inf if following is None else math.nextafter(following.begin, -math.inf)
        yield event, unknown if event.end is None else event.end


def _of_loads(process: Process) -> Iterator[_Moved]:
    by_number = {call.number: call for call in process.calls}
    for load, end in _with_ends(process.loads):
        names = _names(process, load)
        call = by_number.get(load.inside) if load.inside is not None else None
        how = "load_weights" if call is None else call.method or call.name
        yield _Moved(process, load.begin, end, names, (how,), load.in_flight, load.error)


def _names(process: Process, load: Load) -> tuple[str, ...]:
    tensors = process.tensors.get(load.tensors) if load.tensors is not None else None
    return tensors.names if tensors is not None else () if load.first is None else (load.first,)


def _of_calls(process: Process, timeline: _Timeline) -> Iterator[_Moved]:
    """Yield calls that move weights: by name, or because some process loaded weights while they ran."""
    for call, end in _with_ends(process.calls):
        name = call.method or call.name
        names = timeline.names_loaded(call.begin, end) if call.method is not None else ()
        if name in MOVING or names:
            yield _Moved(process, call.begin, end, names, (name,), call.in_flight, call.error)


def _update(parts: Sequence[_Moved], timeline: _Timeline, after: float) -> Update:
    begin, end = min(part.begin for part in parts), max(part.end for part in parts)
    steps = timeline.steps
    pause = timeline.pause_at(begin)
    until = min(after, math.inf if end == math.inf else steps.first_after(end) or math.inf)
    start = begin if pause is None else pause.begin
    around = [call for call in timeline.between(start, until) if call.name in AROUND or call.begin <= end]
    resets = [emptied(call) for call in around if call.name == CLEARING and call.begin >= begin]
    names = {name for part in parts for name in part.names}
    order = [(call.begin, _shown(call)) for call in around]
    if names:
        first = min(part.begin for part in parts if part.names)
        order.append((first, f"load_weights of {len(names)} tensors"))
    clear = None if pause is None else pause.arguments.get("clear_cache")
    mode = None if pause is None else pause.arguments.get("mode")
    in_flight = [part.in_flight for part in parts if part.in_flight is not None]
    return Update(
        begin=begin,
        end=None if end == math.inf else end,
        tensors=len(names),
        how=tuple(dict.fromkeys(how for part in parts for how in part.how)),
        pause=None if pause is None else "" if mode is None else str(mode),
        clear_cache=clear if isinstance(clear, bool) else None,
        reset=True if True in resets else None if None in resets else False,
        order=tuple(dict.fromkeys(shown for _, shown in sorted(order, key=lambda entry: entry[0]))),
        in_flight=max(in_flight) if in_flight else None,
        error=next((part.error for part in parts if part.error), None),
    )


def emptied(reset: Call) -> bool | None:
    """Return whether a reset emptied the prefix cache.

    None: V1's engine core does not say so before 0.11.0 (vllm/v1/engine/core.py 0.10.2:381), and refuses while requests
    hold blocks.
    """
    if reset.error is not None or reset.result is False:
        return False
    return None if reset.result is None and reset.in_flight else True


def _shown(call: Call) -> str:
    """Return a call as code, without arguments that are no plain values."""
    plain = (f"{name}={value}" for name, value in call.arguments.items() if isinstance(value, bool | int | str))
    arguments = ", ".join(plain)
    refused = " -> False" if call.result is False else ""
    return f"{call.name}({arguments[:200]}){refused}{f' x{call.count}' if call.count > 1 else ''}"
