"""One process of a recording: what its file says of it, read once, with its tokens in columns.

Covered: what the process was, what engines it built, which calls changed weights, caches and the schedule, what was
sampled with which parameters, and what is missing.
The format stands in `shipped/rlaudit_recorder.py`. Standard library only: `inspect` reads recordings, too.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
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
    rank: int | None
    device: str | None
    capability: tuple[int, ...] | None
    instance: str | None


@dataclass(frozen=True)
class Model:
    """What was loaded in a worker. dtypes: how many tensors have each."""

    class_name: str | None
    tensors: int | None
    dtypes: Mapping[str, int]


@dataclass(frozen=True)
class Call:
    """A call of a hooked method, and calls like it that followed with nothing in between.

    what: the method, as `vllm.v1.engine.core:EngineCore.reset_prefix_cache` or `worker.update_weights`.
    end: None for one that was not seen to end; of the last of several calls. result: of the first.
    in_flight: requests that the engine held when it began. count: how many calls. errors: how many of them failed.
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
    errors: int = 0
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

    at: float
    requests: int | None
    sequences: int | None
    tokens: int | None
    kept_sequences: int | None
    by_sampling: Mapping[int, int]
    ended: bool


@dataclass(frozen=True)
class Failed:
    """Something of the recorder's own that went wrong."""

    hook: str
    error: str


@dataclass(frozen=True)
class Dropped:
    """What was not kept from some moment on."""

    what: str
    why: str


@dataclass(frozen=True)
class Process:
    """One process of a training. at: its host's monotonic clock when it was first recorded; wall: the epoch's then.

    sampling: the distinct sampling parameters by their numbers; sampling_lines: where they stand.
    key: names the key of a redacted copy; None for what was recorded as it was. Older releases recorded redacted ones.
    missing: what is not recorded, in sentences; steps_missing: of the moments of its tokens. damaged: the sentences on
    lines that cannot be used, each with the number of lines.
    only: the one engine, of several that the process built, whose requests, tokens and calls these are.
    """

    file: Path
    at: float
    host: str
    boot: str | None
    pid: int
    parent: int | None
    name: str | None
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
    failed: tuple[Failed, ...]
    dropped: tuple[Dropped, ...]
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
    file_damage = Damage(file.name)
    lines = recorded_lines(file, file_damage)
    _, first = next(lines, (0, {}))
    version = str(first.get("schema", "")).partition("/")[2]
    if first.get("kind") != "process" or version != SCHEMA_VERSION:
        why = f"its schema is {first['schema']}" if first.get("kind") == "process" else "its first line is damaged"
        damage.add(f"{file.name} is left out: {why}, and {SCHEMA_NAME}/{SCHEMA_VERSION} is read here")
        return None
    return _Reader(first, columns, file_damage, Damage(file.name)).process(file, lines)


def _made(kind: type[Made], record: Mapping[str, Any], **changed: Any) -> Made:
    """Return a record as a dataclass with fields of the same names. changed: fields with other values than there."""
    values = {name: changed[name] if name in changed else record[name] for name in _names(kind)}  # type: ignore[arg-type]
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in fields(kind))


# Every record of these kinds is kept unchanged.
_LISTED: Mapping[str, type] = {
    "engine": Engine,
    "worker": Worker,
    "model": Model,
    "failed": Failed,
    "dropped": Dropped,
    "weights": WeightsRead,
}


@dataclass
class _Reader:
    """What has been read of one file. open_requests: of each id, how many have no line with their tokens.

    asked: the last of these, by id.
    """

    first: dict[str, Any]
    columns: Columns
    damage: Damage
    steps_damage: Damage
    hooked: dict[str, None] = field(default_factory=dict)
    listed: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in _LISTED})
    sampling: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    sampling_lines: dict[int, int] = field(default_factory=dict)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    loads: dict[int, dict[str, Any]] = field(default_factory=dict)
    tensors: dict[int, TensorSet] = field(default_factory=dict)
    totals: Totals | None = None
    records: Counter[str] = field(default_factory=Counter)
    open_requests: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    prompts: dict[str, Column] = field(default_factory=dict)
    requests: list[KeptRequest] = field(default_factory=list)
    asked: dict[str, KeptRequest] = field(default_factory=dict)
    sequences: list[KeptSequence] = field(default_factory=list)
    steps: SampledSteps = field(default_factory=SampledSteps)
    trainer: list[TrainerCall] = field(default_factory=list)
    trainer_calls: int = 0

    def process(self, file: Path, lines: Iterator[tuple[int, dict[str, Any]]]) -> Process:
        """Read the lines after the first."""
        readers: Mapping[str, Callable[[int, dict[str, Any]], None]] = {
            "process": self._second_first,
            "hooks": self._hooks,
            "sampling": self._sampling,
            "prompt": self._prompt,
            "request": self._request,
            "sequence": self._sequence,
            "steps": self._steps,
            "trainer": self._trainer,
            "event": self._event,
            "repeats": self._repeats,
            "tensors": self._tensors,
            "load": self._load,
            "totals": self._totals,
        }
        self.records["process"] = 1
        for line, whole in lines:
            kind = whole["kind"]
            record = whole if kind == "steps" else self._kept(whole)
            self.records[kind] += 1
            if kind in _LISTED:
                self.listed[kind].append(_made(_LISTED[kind], record, line=line, class_name=record.get("class")))
            elif kind in readers:
                readers[kind](line, record)
        return _made(
            Process,
            self.first,
            file=file,
            hooked=tuple(self.hooked),
            engines=self.listed["engine"],
            workers=self.listed["worker"],
            models=self.listed["model"],
            sampling=self.sampling,
            sampling_lines=self.sampling_lines,
            calls=tuple(self._calls()),
            loads=tuple(self._loads()),
            tensors=self.tensors,
            totals=self.totals,
            failed=self.listed["failed"],
            dropped=self.listed["dropped"],
            requests=self.requests,
            sequences=self.sequences,
            steps=self.steps,
            trainer=self.trainer,
            weights=self.listed["weights"],
            missing=self._missing(),
            steps_missing=self._steps_missing(),
            damaged=self.damage.counted(),
            only=None,
        )

    def _kept(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with its arrays on the disk."""
        kept = {name: self.columns.keep(value) for name, value in record.items() if isinstance(value, array)}
        return {**record, **kept} if kept else record

    def _second_first(self, line: int, record: dict[str, Any]) -> None:
        self.damage.add("a second process record is left out: what follows is taken for the first one's", line)

    def _hooks(self, line: int, record: dict[str, Any]) -> None:
        self.hooked.update(dict.fromkeys(record["hooked"]))

    def _sampling(self, line: int, record: dict[str, Any]) -> None:
        if self.sampling.setdefault(record["sampling"], record["parameters"]) is not record["parameters"]:
            self.damage.add("sampling parameters whose number is taken are left out", line)
            return
        self.sampling_lines[record["sampling"]] = line

    def _prompt(self, line: int, record: dict[str, Any]) -> None:
        self.prompts[record["prompt"]] = record["ids"]

    def _request(self, line: int, record: dict[str, Any]) -> None:
        request = _made(KeptRequest, record)
        self.requests.append(request)
        self.asked[request.request] = request
        self.open_requests[request.request] += 1

    def _sequence(self, line: int, record: dict[str, Any]) -> None:
        self.in_flight += record["finish"] is None
        name, prompt_ids = record["request"], self.prompts.get(record["prompt"])
        asked = self.asked.pop(name, None)
        self.sequences.append(_made(KeptSequence, record, line=line, asked=asked, prompt_ids=prompt_ids))
        if self.open_requests[name] > 1:
            self.open_requests[name] -= 1
        elif not self.open_requests.pop(name, 0):
            self.damage.add("tokens whose request has no line: nothing says how they were sampled", line)

    def _steps(self, line: int, record: dict[str, Any]) -> None:
        self.steps.add(record, self.first["at"], line, self.steps_damage)

    def _trainer(self, line: int, record: dict[str, Any]) -> None:
        self.trainer_calls = max(self.trainer_calls, record["call"] or 0)
        self.trainer.append(_made(TrainerCall, record, line=line, model=record["model"] or {}))

    def _event(self, line: int, record: dict[str, Any]) -> None:
        call = self.calls.get(record["call"])
        if record["side"] == "begin":
            if call is not None:
                self.damage.add("a call whose number is taken is left out", line)
                return
            self.calls[record["call"]] = {**record, "end": None, "count": 1, "errors": 0}
        elif call is None:
            self.damage.add("the end of a call that has no beginning is left out", line)
        elif call["end"] is None:
            call.update(end=record["at"], result=record["result"], error=record["error"])
            call["errors"] = int(record["error"] is not None)
        else:
            # A call like the one before, which failed: how many there were stands in `repeats`.
            call.update(end=max(call["end"], record["at"]), error=call["error"] or record["error"])

    def _repeats(self, line: int, record: dict[str, Any]) -> None:
        call = self.calls.get(record["call"])
        if call is None:
            self.damage.add("repeats of a call that has no beginning are left out", line)
            return
        call["count"] += record["count"]
        call["errors"] += record["errors"]
        call["end"] = max(call["end"] or record["end"], record["end"])

    def _tensors(self, line: int, record: dict[str, Any]) -> None:
        number = record["tensors"]
        if number in self.tensors:
            self.damage.add("a set of tensors whose number is taken is left out", line)
            return
        shapes = tuple(tuple(shape) for shape in record["shapes"])
        self.tensors[number] = TensorSet(tuple(record["names"]), shapes)

    def _load(self, line: int, record: dict[str, Any]) -> None:
        load = self.loads.get(record["load"])
        if record["side"] == "begin":
            if load is not None:
                self.damage.add("a load whose number is taken is left out", line)
                return
            first = record["names"][0] if record["names"] else None
            open_end = {"begin": record["at"], "end": None, "tensors": None, "error": None}
            self.loads[record["load"]] = {**record, **open_end, "first": first}
        elif load is None or load["end"] is not None:
            self.damage.add("the end of a load that has no beginning is left out", line)
        else:
            end = record["at"] if record["end"] is None else record["end"]
            load.update(end=max(end, load["begin"]), tensors=record["tensors"], error=record["error"])

    def _totals(self, line: int, record: dict[str, Any]) -> None:
        counts = record["by_sampling"].items()
        by_sampling = {int(name): count for name, count in counts if name.isdecimal() and len(name) < 19}
        self.totals = _made(Totals, record, by_sampling=by_sampling)

    def _calls(self) -> Iterator[Call]:
        for number, call in self.calls.items():
            if call["end"] is not None and call["end"] < call["at"]:
                self.damage.add(f"call {number} ends before it begins: it counts as one that did not end")
                call["end"] = None
            yield _made(Call, call, number=number, begin=call["at"])

    def _loads(self) -> Iterator[Load]:
        for number, load in self.loads.items():
            if load["tensors"] is not None and load["tensors"] not in self.tensors:
                self.damage.add("which tensors a load brought is in no line that can be read")
            yield _made(Load, load, number=number)

    def _steps_missing(self) -> tuple[str, ...]:
        counted = 0 if self.totals is None else self.totals.tokens or 0
        lost = counted - sum(self.steps.tokens)
        if lost > 0:
            self.steps_damage.add(f"when {lost} of {counted} tokens were sampled is in no line that can be read")
        return self.steps_damage.sentences()

    def _missing(self) -> tuple[str, ...]:
        lost = Damage(self.damage.name)
        for dropped in dict.fromkeys((entry.what, entry.why) for entry in self.listed["dropped"]):
            lost.add(f"from some moment on not recorded: {dropped[0]} ({dropped[1]})")
        for failed in dict.fromkeys((entry.hook, entry.error) for entry in self.listed["failed"]):
            lost.add(f"the recorder failed in {failed[0]}: {failed[1]}")
        calls = sum(call["end"] is None for call in self.calls.values())
        loads = sum(load["end"] is None for load in self.loads.values())
        requests = sum(self.open_requests.values())
        if calls:
            lost.add(f"{calls} of {len(self.calls)} calls have no end")
        if loads:
            lost.add(f"{loads} of {len(self.loads)} loads of weights have no end")
        if requests:
            lost.add(f"{requests} of {self.records['request']} kept requests have no tokens: they had not finished")
        if self.in_flight:
            lost.add(f"{self.in_flight} of {self.records['sequence']} kept sequences were in flight at the end")
        unread = self.trainer_calls - self.records["trainer"]
        if unread > 0:
            lost.add(
                f"{unread} of {self.trainer_calls} calls of the trainer's function are in no line that can be read"
            )
        written = 0 if self.totals is None else self.totals.kept_sequences or 0
        if written > self.records["sequence"]:
            lost.add(
                f"{written - self.records['sequence']} of {written} kept sequences are in no line that can be read"
            )
        if self.totals is None or not self.totals.ended:
            lost.add("no orderly end: the process was killed, or still ran, and its last seconds may not be here")
        return (*self.damage.sentences(), *lost.sentences())
