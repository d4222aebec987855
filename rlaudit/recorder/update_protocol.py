"""How a training brought new weights to its engine: by which calls, in which order, with what left in the cache.

An update is what the recorder saw bring weights: `load_weights`, a worker's own method for it, and the calls of workers
in which these happened. What copies weights past all of them (shared storage, IPC) is not seen.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlaudit.recorder.recording import Call, Process

LOAD_WEIGHTS = "load_weights"
# Methods of a worker, and of vLLM's engine, that bring weights by themselves (vllm/v1/worker/gpu_worker.py).
RELOADS = frozenset({"reload_weights", "start_weight_update", "update_weights", "finish_weight_update"})
_PAUSES = frozenset({"pause_generation", "pause_scheduler"})
RESET, SLEEP = "reset_prefix_cache", "sleep"


@dataclass(frozen=True)
class Update:
    """One update, on the clock of its host. in_flight: the most requests that the engine held; None if unknown.

    reset: whether the prefix cache was emptied with it or after it, before the next one. failed: how many calls did.
    """

    begin: float
    end: float
    methods: tuple[str, ...]
    in_flight: int | None
    reset: bool
    failed: int


@dataclass(frozen=True)
class Pause:
    """A call that stops generation before an update. arguments: by their names, as they were passed."""

    mode: str | None
    clears_cache: bool | None
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class UpdateProtocol:
    """All updates of one engine. rpc_methods: every method that `collective_rpc` called on workers, with how often.

    resets: how many calls emptied the prefix cache; refused: how many of them answered false.
    """

    updates: tuple[Update, ...]
    rpc_methods: Mapping[str, int]
    pauses: tuple[Pause, ...]
    resets: int
    refused: int
    sleeps: int

    @property
    def methods(self) -> tuple[str, ...]:
        """By which methods weights came, in any update."""
        return tuple(dict.fromkeys(method for update in self.updates for method in update.methods))

    @property
    def in_flight(self) -> int | None:
        """The most requests that an update met; None if that is unknown of all."""
        return max((one.in_flight for one in self.updates if one.in_flight is not None), default=None)

    @property
    def followed_by_reset(self) -> tuple[int, int]:
        """How many updates, of how many, had the cache emptied. The last one counts only if it had: the training may
        have ended before.
        """
        judged = self.updates if not self.updates or self.updates[-1].reset else self.updates[:-1] or self.updates
        return sum(one.reset for one in judged), len(judged)


@dataclass(frozen=True)
class _Bringing:
    """Something that brought weights: a span of a process's clock."""

    clock: str
    begin: float
    end: float
    method: str
    in_flight: int | None
    failed: bool


def update_protocol(processes: Sequence[Process]) -> UpdateProtocol:
    """Return what the processes of one engine tell of its updates."""
    calls = [(process.clock, call) for process in processes for call in process.calls]
    rpc_methods: Counter[str] = Counter()
    for _, call in calls:
        if call.method is not None:
            rpc_methods[call.method] += call.count
    resets = [call for _, call in calls if call.name == RESET]
    brought = [one for process in processes for one in _bringings(process)]
    # Workers on several hosts bring the same updates by several clocks: those of one clock are all of them.
    clock = max(dict.fromkeys(one.clock for one in brought), key=lambda name: _count(brought, name), default="")
    spans = list(_spans([one for one in brought if one.clock == clock]))
    return UpdateProtocol(
        updates=tuple(_updates(spans, [call for host, call in calls if host == clock])),
        rpc_methods=dict(rpc_methods),
        pauses=tuple(_pauses(call for _, call in calls)),
        resets=sum(call.count for call in resets),
        refused=sum(call.count for call in resets if call.result is False),
        sleeps=sum(call.count for _, call in calls if call.name == SLEEP),
    )


def _count(brought: Sequence[_Bringing], clock: str) -> int:
    return sum(one.clock == clock for one in brought)


def _bringings(process: Process) -> Iterator[_Bringing]:
    inside = {load.inside for load in process.loads if load.inside is not None}
    for load in process.loads:
        end = load.begin if load.end is None else load.end
        yield _Bringing(process.clock, load.begin, end, LOAD_WEIGHTS, load.in_flight, load.error is not None)
    for call in process.calls:
        method = call.method or (call.name if call.what.startswith("worker.") else None)
        if method is not None and (method in RELOADS or call.number in inside):
            end = call.begin if call.end is None else call.end
            yield _Bringing(process.clock, call.begin, end, method, call.in_flight, call.errors > 0)


def _spans(brought: Sequence[_Bringing]) -> Iterator[list[_Bringing]]:
    """Yield what overlaps in time: the ranks of a worker, and the call in which they load."""
    span: list[_Bringing] = []
    end = float("-inf")
    for one in sorted(brought, key=lambda each: each.begin):
        if span and one.begin > end:
            yield span
            span = []
        span.append(one)
        end = max(end, one.end) if len(span) > 1 else one.end
    if span:
        yield span


def _updates(spans: Sequence[list[_Bringing]], calls: Sequence[Call]) -> Iterator[Update]:
    ends = [max(one.end for one in span) for span in spans]
    for number, span in enumerate(spans):
        begin = min(one.begin for one in span)
        after = spans[number + 1][0].begin if number + 1 < len(spans) else float("inf")
        before = ends[number - 1] if number else float("-inf")
        paused = [call.begin for call in calls if call.name in _PAUSES and before <= call.begin < begin]
        held = [one.in_flight for one in span if one.in_flight is not None]
        yield Update(
            begin,
            ends[number],
            # Outermost first: what a caller calls, then what happens in it.
            tuple(dict.fromkeys(one.method for one in sorted(span, key=lambda one: one.begin))),
            max(held, default=None),
            any(_empties(call, min(paused, default=begin), after, before) for call in calls),
            sum(one.failed for one in span),
        )


def _empties(call: Call, begin: float, after: float, before: float) -> bool:
    """Return whether a call leaves no prefix of the old weights in the cache, which sleeping gives up.

    before: when the update before ended. begin: from when on this one holds, the pause for it included. after: when the
    next one begins.
    """
    if call.name == RESET:
        return begin <= call.begin < after and call.result is not False and not call.errors
    clears = call.name == SLEEP or (call.name in _PAUSES and call.arguments.get("clear_cache") is True)
    return clears and before <= call.begin < after


def _pauses(calls: Iterator[Call]) -> Iterator[Pause]:
    """Yield the pauses as they were called: in the front end, or in the engine core if that is all that is known."""
    found: dict[str, list[Call]] = {}
    for call in calls:
        if call.name in _PAUSES:
            found.setdefault(call.name, []).append(call)
    for call in found.get("pause_generation") or found.get("pause_scheduler") or ():
        mode, clears = call.arguments.get("mode"), call.arguments.get("clear_cache")
        names = tuple(name for name in call.arguments if not name.isdecimal())
        yield Pause(
            mode if isinstance(mode, str) else None, clears if isinstance(clears, bool) else None, names
        )
