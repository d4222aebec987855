"""One process of a recording: what its file says of it, read once, with its tokens in columns.

Covered: what the process was, what engines it built, which calls changed weights, caches and the schedule, what was
sampled with which parameters, and what is missing.
The format stands in `shipped/rlaudit_recorder.py`. Standard library only: `inspect` reads recordings, too.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from rlaudit.recording.column import Column, Columns
from rlaudit.recording.kept_lines import KeptRequest, KeptSequence, TrainerCall, WeightsRead
from rlaudit.recording.recorded_lines import (
    SCHEMA_NAME,
    SCHEMA_VERSION,
    Damage,
    first_line,
    is_first_line,
    recorded_lines,
)
from rlaudit.recording.sampled_steps import SampledSteps

Made = TypeVar("Made")


@dataclass(frozen=True)
class Engine:
    """A configuration that was resolved. line: of its file. effective: None if that failed, with its error."""

    line: int
    number: int
    class_name: str | None
    written: Mapping[str, Any]
    effective: Mapping[str, Any] | None
    error: str | None

    @property
    def instance(self) -> str | None:
        """What vLLM calls this configuration, in each process that gets it."""
        instance = (self.effective or {}).get("instance_id")
        return instance if isinstance(instance, str) else None


@dataclass(frozen=True)
class Worker:
    """A process that holds weights. instance: of the configuration that it was started with."""

    class_name: str | None
    device: str | None
    capability: tuple[int, ...] | None
    instance: str | None


@dataclass(frozen=True)
class Model:
    """What was loaded in a worker. dtypes: how many tensors have each."""

    class_name: str | None
    dtypes: Mapping[str, int]


@dataclass(frozen=True)
class Call:
    """A call of a hooked method, and calls like it that followed with nothing in between.

    what: the method, as `vllm.v1.engine.core:EngineCore.reset_prefix_cache` or `worker.update_weights`.
    end: None for one that was not seen to end; of the last of several calls. result: of the first.
    in_flight: requests that the engine held when it began. count: how many calls.
    engine: which of those that the process built; None if unknown, or built elsewhere.
    """

    number: int
    what: str
    begin: float
    end: float | None
    arguments: Mapping[str, Any]
    result: Any
    error: str | None
    in_flight: int | None
    count: int = 1
    engine: int | None = None

    @property
    def name(self) -> str:
        """The method's own name."""
        return self.what.rpartition(".")[2]

    @property
    def method(self) -> str | None:
        """The method of the workers that a `collective_rpc` calls; None for other calls."""
        method = self.arguments.get("method") if self.name == "collective_rpc" else None
        return method if isinstance(method, str) else None


@dataclass(frozen=True)
class Load:
    """Tensors given to `load_weights`, without an event or a repeated name in between.

    end: None for a load that was not seen to end. tensors: number of the set of tensors; None if unknown.
    inside: the number of the call that it happened in.
    """

    number: int
    begin: float
    end: float | None
    first: str | None
    tensors: int | None
    in_flight: int | None
    inside: int | None
    error: str | None


@dataclass(frozen=True)
class TensorSet:
    """Names and shapes of tensors that were loaded together."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Totals:
    """Counts since a process began, of all its sequences, kept or not. ended: at an orderly exit."""

    requests: int | None
    sequences: int | None
    tokens: int | None
    by_sampling: Mapping[int, int]
    ended: bool


@dataclass(frozen=True)
class Process:
    """One process of a training. at: its host's monotonic clock when it was first recorded; wall: the epoch's then.

    sampling: the distinct sampling parameters by their numbers; sampling_lines: where they stand.
    key: names the key of a redacted copy; None for what was recorded as it was. Older releases recorded redacted ones.
    failed: hooks of the recorder's own that went wrong, with their errors. dropped: what was not kept from some moment
    on, and why. missing: what is not recorded, in sentences; steps_missing: of the moments of its tokens. damaged: the
    sentences on lines that cannot be used, each with the number of lines.
    only: the one engine, of several that the process built, whose requests, tokens and calls these are.
    """

    file: Path
    at: float
    host: str
    boot: str | None
    pid: int
    parent: int | None
    wall: float | None
    argv: tuple[str, ...]
    python: str | None
    versions: Mapping[str, str]
    environment: Mapping[str, str]
    key: str | None
    hooked: tuple[str, ...]
    engines: tuple[Engine, ...]
    workers: tuple[Worker, ...]
    models: tuple[Model, ...]
    sampling: Mapping[int, Mapping[str, Any]]
    sampling_lines: Mapping[int, int]
    calls: tuple[Call, ...]
    loads: tuple[Load, ...]
    tensors: Mapping[int, TensorSet]
    totals: Totals | None
    failed: tuple[tuple[str, str], ...]
    dropped: tuple[tuple[str, str], ...]
    requests: tuple[KeptRequest, ...]
    sequences: tuple[KeptSequence, ...]
    steps: SampledSteps
    trainer: tuple[TrainerCall, ...]
    weights: tuple[WeightsRead, ...]
    missing: tuple[str, ...]
    steps_missing: tuple[str, ...]
    damaged: tuple[tuple[str, int], ...]
    only: int | None = None

    @property
    def redacted(self) -> bool:
        """Whether token ids, texts and names are hashes."""
        return self.key is not None

    @property
    def clock(self) -> str:
        """What processes with the same monotonic clock share: the boot of their host."""
        return self.boot or f"host {self.host}"

    @property
    def trainer_functions(self) -> tuple[str, ...]:
        """The functions that were hooked because a trainer makes its logprobs in them."""
        return tuple(name for name in self.hooked if ":" in name and not name.startswith("vllm."))


def read_process(file: Path, columns: Columns, damage: Damage) -> Process | None:
    """Return the process of a file; None, and a sentence in `damage`, if it has none. columns: keep its arrays."""
    try:
        line = first_line(file)
    except (OSError, ValueError) as error:
        damage.add(f"{file.name} is left out: {error}")
        return None
    if not is_first_line(line):
        damage.add(f"{file.name} is left out: its first line does not say which process it is of")
        return None
    reader = _Reader(file.name, columns)
    lines = recorded_lines(file, reader.damage)
    _, first = next(lines, (0, {}))
    version = str(first.get("schema", "")).partition("/")[2]
    if first.get("kind") != "process" or version != SCHEMA_VERSION:
        why = f"its schema is {first['schema']}" if first.get("kind") == "process" else "its first line is damaged"
        damage.add(f"{file.name} is left out: {why}, and {SCHEMA_NAME}/{SCHEMA_VERSION} is read here")
        return None
    return reader.process(file, first, lines)


def _made(kind: type[Made], record: Mapping[str, Any], **changed: Any) -> Made:
    """Return a record as a dataclass with fields of the same names. changed: fields with other values than there."""
    values = {name: changed[name] if name in changed else record[name] for name in _names(kind)}  # type: ignore[arg-type]
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in fields(kind))


# Every record of these kinds is kept unchanged, in the field of a process.
_LISTED: Mapping[str, tuple[str, type]] = {
    "engine": ("engines", Engine),
    "worker": ("workers", Worker),
    "model": ("models", Model),
    "weights": ("weights", WeightsRead),
}


class _Reader:
    """What has been read of one file. A method `_read_KIND` takes the lines of a kind."""

    def __init__(self, name: str, columns: Columns) -> None:
        self.columns, self.damage, self.steps_damage = columns, Damage(name), Damage(name)
        self.hooked: dict[str, None] = {}
        self.failed: list[tuple[str, str]] = []
        self.dropped: list[tuple[str, str]] = []
        self.listed: dict[str, list[Any]] = {name: [] for name, _ in _LISTED.values()}
        self.sampling: dict[int, Mapping[str, Any]] = {}
        self.sampling_lines: dict[int, int] = {}
        self.calls: dict[int, Call] = {}
        self.loads: dict[int, Load] = {}
        self.tensors: dict[int, TensorSet] = {}
        self.totals: Totals | None = None
        self.prompts: dict[str, Column] = {}
        self.requests: list[KeptRequest] = []
        # Of each id: how many requests have no line with their tokens, and the last of them.
        self.open_requests = Counter[str]()
        self.asked: dict[str, KeptRequest] = {}
        self.sequences: list[KeptSequence] = []
        self.steps = SampledSteps()
        self.trainer: list[TrainerCall] = []
        self.trainer_calls = 0
        self.began = 0.0

    def process(self, file: Path, first: dict[str, Any], lines: Iterator[tuple[int, dict[str, Any]]]) -> Process:
        """Read the lines after the first."""
        self.began = first["at"]
        for line, whole in lines:
            kind = whole["kind"]
            record = whole if kind == "steps" else self._kept(whole)
            if kind in _LISTED:
                name, made = _LISTED[kind]
                self.listed[name].append(_made(made, record, line=line, class_name=record.get("class")))
            elif reader := getattr(self, f"_read_{kind}", None):
                reader(line, record)
        self._end()
        return _made(
            Process,
            {**first, **vars(self), **self.listed},
            file=file,
            hooked=tuple(self.hooked),
            calls=tuple(self.calls.values()),
            loads=tuple(self.loads.values()),
            missing=self._missing(),
            steps_missing=self.steps_damage.sentences(),
            damaged=self.damage.counted(),
            only=None,
        )

    def _kept(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with its arrays on the disk."""
        kept = {name: self.columns.keep(value) for name, value in record.items() if isinstance(value, array)}
        return {**record, **kept} if kept else record

    def _read_process(self, line: int, record: dict[str, Any]) -> None:
        self.damage.add("a second process record is left out: what follows is taken for the first one's", line)

    def _read_hooks(self, line: int, record: dict[str, Any]) -> None:
        self.hooked.update(dict.fromkeys(record["hooked"]))

    def _read_failed(self, line: int, record: dict[str, Any]) -> None:
        self.failed.append((record["hook"], record["error"]))

    def _read_dropped(self, line: int, record: dict[str, Any]) -> None:
        self.dropped.append((record["what"], record["why"]))

    def _read_sampling(self, line: int, record: dict[str, Any]) -> None:
        if record["sampling"] in self.sampling:
            self.damage.add("sampling parameters whose number is taken are left out", line)
            return
        self.sampling[record["sampling"]] = record["parameters"]
        self.sampling_lines[record["sampling"]] = line

    def _read_prompt(self, line: int, record: dict[str, Any]) -> None:
        self.prompts[record["prompt"]] = record["ids"]

    def _read_request(self, line: int, record: dict[str, Any]) -> None:
        request = _made(KeptRequest, record)
        self.requests.append(request)
        self.asked[request.request] = request
        self.open_requests[request.request] += 1

    def _read_sequence(self, line: int, record: dict[str, Any]) -> None:
        name, prompt_ids = record["request"], self.prompts.get(record["prompt"])
        asked = self.asked.pop(name, None)
        self.sequences.append(_made(KeptSequence, record, line=line, asked=asked, prompt_ids=prompt_ids))
        if self.open_requests[name] > 1:
            self.open_requests[name] -= 1
        elif not self.open_requests.pop(name, 0):
            self.damage.add("tokens whose request has no line: nothing says how they were sampled", line)

    def _read_steps(self, line: int, record: dict[str, Any]) -> None:
        self.steps.add(record, self.began, line, self.steps_damage)

    def _read_trainer(self, line: int, record: dict[str, Any]) -> None:
        self.trainer_calls = max(self.trainer_calls, record["call"] or 0)
        self.trainer.append(_made(TrainerCall, record, line=line, model=record["model"] or {}))

    def _read_event(self, line: int, record: dict[str, Any]) -> None:
        number, at, error = record["call"], record["at"], record["error"]
        call = self.calls.get(number)
        if record["side"] == "begin":
            if call is not None:
                self.damage.add("a call whose number is taken is left out", line)
                return
            self.calls[number] = _made(Call, record, number=number, begin=at, end=None, count=1)
        elif call is None:
            self.damage.add("the end of a call that has no beginning is left out", line)
        elif call.end is None:
            self.calls[number] = replace(call, end=at, result=record["result"], error=error)
        else:
            # A call like the one before, which failed: how many there were stands in `repeats`.
            self.calls[number] = replace(call, end=max(call.end, at), error=call.error or error)

    def _read_repeats(self, line: int, record: dict[str, Any]) -> None:
        call = self.calls.get(record["call"])
        if call is None:
            self.damage.add("repeats of a call that has no beginning are left out", line)
            return
        end = max(call.end or record["end"], record["end"])
        self.calls[call.number] = replace(call, end=end, count=call.count + record["count"])

    def _read_tensors(self, line: int, record: dict[str, Any]) -> None:
        if record["tensors"] in self.tensors:
            self.damage.add("a set of tensors whose number is taken is left out", line)
            return
        shapes = tuple(tuple(shape) for shape in record["shapes"])
        self.tensors[record["tensors"]] = TensorSet(tuple(record["names"]), shapes)

    def _read_load(self, line: int, record: dict[str, Any]) -> None:
        number, at = record["load"], record["at"]
        load = self.loads.get(number)
        if record["side"] == "begin":
            if load is not None:
                self.damage.add("a load whose number is taken is left out", line)
                return
            begun = {"number": number, "begin": at, "end": None, "tensors": None, "error": None}
            self.loads[number] = _made(Load, {**record, **begun}, first=next(iter(record["names"]), None))
        elif load is None or load.end is not None:
            self.damage.add("the end of a load that has no beginning is left out", line)
        else:
            end = max(at if record["end"] is None else record["end"], load.begin)
            self.loads[number] = replace(load, end=end, tensors=record["tensors"], error=record["error"])

    def _read_totals(self, line: int, record: dict[str, Any]) -> None:
        counts = record["by_sampling"].items()
        by_sampling = {int(name): count for name, count in counts if name.isdecimal() and len(name) < 19}
        self.totals = _made(Totals, record, by_sampling=by_sampling)

    def _end(self) -> None:
        """Name what only the whole file shows to be wrong."""
        for call in self.calls.values():
            if call.end is not None and call.end < call.begin:
                self.damage.add(f"call {call.number} ends before it begins: it counts as one that did not end")
                self.calls[call.number] = replace(call, end=None)
        for load in self.loads.values():
            if load.tensors is not None and load.tensors not in self.tensors:
                self.damage.add("which tensors a load brought is in no line that can be read")

    def _missing(self) -> tuple[str, ...]:
        lost = Damage(self.damage.name)
        for what, why in dict.fromkeys(self.dropped):
            lost.add(f"from some moment on not recorded: {what} ({why})")
        for hook, error in dict.fromkeys(self.failed):
            lost.add(f"the recorder failed in {hook}: {error}")
        calls = sum(call.end is None for call in self.calls.values())
        loads = sum(load.end is None for load in self.loads.values())
        requests = sum(self.open_requests.values())
        in_flight = sum(sequence.finish is None for sequence in self.sequences)
        made = self.trainer_calls
        unread = made - len(self.trainer)
        for count, sentence in (
            (calls, f"{calls} of {len(self.calls)} calls have no end"),
            (loads, f"{loads} of {len(self.loads)} loads of weights have no end"),
            (requests, f"{requests} of {len(self.requests)} kept requests have no tokens: they had not finished"),
            (in_flight, f"{in_flight} of {len(self.sequences)} kept sequences were in flight at the end"),
            (unread, f"{unread} of {made} calls of the trainer's function could not be read"),
        ):
            if count > 0:
                lost.add(sentence)
        if self.totals is None or not self.totals.ended:
            lost.add("no orderly end: the process was killed, or still ran, and its last seconds may not be here")
        return (*self.damage.sentences(), *lost.sentences())
