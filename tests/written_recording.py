"""A written recording: line by line, as `rlaudit/recording/shipped/rlaudit_recorder.py` documents it.

One process is a `WrittenProcess`; others of the same recording are `beside` it and share its clock. Tables of tests
have the same methods as words (`play`).
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.recording.recording import Recording, open_recording
from rlaudit.recording.shipped.rlaudit_recorder import ELEMENTS, PARTS
from rlaudit.recording.weight_updates import ServedEngine

BOOT = "0c7e1a52-9b1b-4b13-9a3f-3b1c1d2e3f40"
CORE, ASYNC = "vllm.v1.engine.core:EngineCore", "vllm.v1.engine.async_llm:AsyncLLM"
RESET, RPC = f"{CORE}.reset_prefix_cache", f"{CORE}.collective_rpc"
PAUSE, RESUME = f"{ASYNC}.pause_generation", f"{ASYNC}.resume_generation"
FROZEN = {"number": 2, "class": "Llama", "dtype": "torch.float32", "trainable": False, "adapters": None}


def coded(values: Any, dtype: str) -> str:
    """Base64 of little-endian numbers."""
    return base64.b64encode(np.asarray(values, dtype=dtype).tobytes()).decode()


def name_of_prompt(ids: Sequence[int]) -> str:
    return hashlib.blake2b(np.asarray(ids, dtype="<i4").tobytes(), digest_size=8).hexdigest()


def lines_of(folder: Path) -> list[bytes]:
    """The lines of the only file of a recording."""
    (file,) = folder.glob("*.jsonl")
    return file.read_bytes().splitlines(keepends=True)


def put_lines(folder: Path, lines: Sequence[bytes]) -> Path:
    """Write other lines in their place, or the first ones of a new recording."""
    folder.mkdir(parents=True, exist_ok=True)
    file = next(folder.glob("*.jsonl"), folder / "node-100-0a1b2c3d.jsonl")
    file.write_bytes(b"".join(lines))
    return folder


@dataclass
class Clock:
    """The moment of the next line of every process that has this clock."""

    now: float = 1000.0


@dataclass
class WrittenProcess:
    """One file. first: fields of its first line, beside what a process of one host has."""

    folder: Path
    pid: int = 100
    parent: int = 1
    clock: Clock = field(default_factory=Clock)
    first: dict[str, Any] = field(default_factory=dict)
    everyone: list["WrittenProcess"] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    calls: int = 0
    loads: int = 0
    trainer_calls: int = 0
    prompts: set[str] = field(default_factory=set)
    requests: int = 0
    sequences: int = 0
    tokens: int = 0
    # The number of the call that is under way.
    inside: int | None = None

    def __post_init__(self) -> None:
        self.everyone.append(self)
        begun = {"schema": "rlaudit-recording/1", "host": "node", "boot": BOOT, "pid": self.pid, "parent": self.parent,
                 "wall": 1.7e9 + self.now, "argv": ["train.py"], "python": "3.11.9",
                 "versions": {"vllm": "0.18.1", "torch": "2.10.0"}, "environment": {}}  # fmt: skip
        self.put("process", **begun | self.first)
        self.put("hooks", hooked=[target for targets in PARTS.values() for target in targets])

    def beside(self, pid: int, parent: int = 1, clock: Clock | None = None, **first: Any) -> "WrittenProcess":
        """Another process of the recording. clock: of another host."""
        return WrittenProcess(self.folder, pid, parent, clock or self.clock, first, self.everyone)

    @property
    def now(self) -> float:
        return self.clock.now

    @now.setter
    def now(self, now: float) -> None:
        self.clock.now = now

    @property
    def path(self) -> Path:
        return self.folder / f"{self.lines[0]['host']}-{self.pid}-0a1b2c3d.jsonl"

    def put(self, kind: str, at: float | None = None, **record: Any) -> None:
        self.now += 0.001
        self.lines.append({"kind": kind, "at": self.now if at is None else at, **record})

    def engine(
        self, number: int | None = None, model: str | None = None, error: str | None = None, name: str = "EngineArgs",
        written: dict[str, Any] | None = None, **effective: Any,
    ) -> None:  # fmt: skip
        """An engine that was built, or was not."""
        number = number or 1 + sum(line["kind"] == "engine" for line in self.lines)
        written = {**({} if model is None else {"model": model}), **(written or {})}
        resolved = effective if error is None else None
        self.put("engine", number=number, **{"class": name}, written=written, effective=resolved, error=error)

    def worker(self, instance: str | None = None, name: str = "Worker", device: str = "cpu", **more: Any) -> None:
        self.put("worker", **{"class": name, "instance": instance, "device": device, "capability": None, **more})

    def sampling(self, number: int = 0, **parameters: Any) -> None:
        self.put("sampling", sampling=number, parameters={"n": 1, "temperature": 1.0, "top_p": 1.0, "top_k": 0,
                 "min_p": 0.0, "repetition_penalty": 1.0, "logprobs": 0, **parameters})  # fmt: skip

    def request(self, prompt: Sequence[int], index: int = 0, sampling: int = 0, **more: Any) -> str:
        """A request; its id."""
        name = name_of_prompt(prompt)
        if name not in self.prompts:
            self.prompts.add(name)
            self.put("prompt", prompt=name, ids=coded(prompt, "<i4"))
        request = str(self.requests)
        self.requests += 1
        self.put("request", **{"request": request, "prompt": name, "sampling": sampling, "index": index,
                 "parts": "text", "parent": None, "salted": False, "lora": None, **more})  # fmt: skip
        return request

    def step(self, tokens: int, engine: int | None = None) -> int:
        """A step of the engine core; its number."""
        self.now += 0.001
        self.put("steps", first=self.steps, stamps=coded([self.now], "<f8"), tokens=coded([tokens], "<i4"),
                 engines=None if engine is None else coded([engine], "<i4"))  # fmt: skip
        self.steps += 1
        self.tokens += tokens
        return self.steps - 1

    def sequence(
        self, request: str, prompt: Sequence[int], ids: Any, logprobs: Any, steps: list[list[int]], **more: Any
    ) -> None:
        self.sequences += 1
        self.put("sequence", **{"request": request, "prompt": name_of_prompt(prompt),
                 "ids": coded(ids, "<i4"), "logprobs": None if logprobs is None else coded(logprobs, "<f4"),
                 "steps": steps, "cached": 0, "finish": "length", "visible": len(ids), "resumed": False,
                 **more})  # fmt: skip

    def sampled(
        self, prompt: Sequence[int], ids: Any, logprobs: Any = None, *, a_step: int = 0, others: int = 0,
        of_request: dict[str, Any] | None = None, engine: int | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """A request from beginning to end. a_step: tokens, 0 for all in one. others: tokens of requests not kept."""
        of_engine = {} if engine is None else {"engine": engine}
        request = self.request(prompt, **of_engine, **(of_request or {}))
        a_step = a_step or len(ids)
        steps = [self.step(a_step + others, engine) for _ in range(len(ids) // a_step)]
        logprobs = [-1.0] * len(ids) if logprobs is None else logprobs
        self.sequence(request, prompt, ids, logprobs, [[steps[0], len(steps), a_step]], **of_engine, **more)

    def call(self, what: str, result: Any = None, **arguments: Any) -> int:
        """A call. engine: of several that the process built. in_flight: requests."""
        number = self.begin(what, **arguments)
        self.now += 0.01
        self.end(number, what, result)
        return number

    def begin(self, what: str, in_flight: int | None = 0, engine: int | None = None, **arguments: Any) -> int:
        self.calls += 1
        begun = {"call": self.calls, "what": what, "side": "begin", "engine": engine}
        self.put("event", **begun, arguments=arguments, in_flight=in_flight)
        return self.calls

    def end(self, number: int, what: str, result: Any = None, error: str | None = None) -> None:
        self.put("event", call=number, what=what, side="end", result=result, error=error)

    @contextmanager
    def rpc(self, method: str, **more: Any) -> Iterator[int]:
        """A call on all workers, and what happens within it."""
        self.inside = self.begin(RPC, method=method, **more)
        yield self.inside
        self.now += 0.01
        self.end(self.inside, RPC)
        self.inside = None

    def reset(self, result: bool | None = True, **more: Any) -> None:
        self.call(RESET, result=result, **more)

    def pause(self, **arguments: Any) -> None:
        self.call(PAUSE, **arguments)

    def resume(self) -> None:
        self.call(RESUME)

    def load(self, names: Sequence[str] = ("embed", "head"), seconds: float = 0.01, number: int = 0) -> None:
        """One run of tensors. number: of its set."""
        self.loads += 1
        self.put("load", load=self.loads, side="begin", inside=self.inside, names=[names[0]], in_flight=0)
        self.now += seconds
        known = {line["tensors"] for line in self.lines if line["kind"] == "tensors"}
        if number not in known:
            self.put("tensors", tensors=number, names=list(names), shapes=[[4, 4]] * len(names))
        self.put("load", load=self.loads, side="end", inside=self.inside, tensors=number, end=self.now, error=None)

    def weights(self, values: Sequence[float], **rows: Sequence[float]) -> None:
        """A reading of the worker's tensors, one value for all elements of each. rows: sent, rounded and held."""
        each = {f"values_{name}": coded(np.repeat(row, ELEMENTS), "<f4") for name, row in rows.items()}
        self.put("weights", load=self.loads or None, tensors=0, sent=0 if rows else None,
                 values=coded(np.repeat(values, ELEMENTS), "<f4"), **each)  # fmt: skip

    def trainer(self, ids_RT: Any, logprobs_RT: Any, gradients: bool = True, model: Any = 1, **more: Any) -> None:
        """One call of the trainer's function with rows of one length. model: what it is, or its number."""
        if isinstance(model, int):
            model = {**FROZEN, "number": model, "trainable": True, "casts": False}
        rows = [(row, 0, ids, logprobs) for row, (ids, logprobs) in enumerate(zip(ids_RT, logprobs_RT, strict=True))]
        self.stretches(rows, gradients, model, **more)

    def stretches(self, stretches: Any, gradients: bool = True, model: Any = None, **more: Any) -> None:
        """One call of a trainer's function. stretches: row, begin, ids and logprobs of each."""
        rows, begins, ids, logprobs = zip(*stretches, strict=True)
        self.trainer_calls += 1
        self.put("trainer", **{"call": self.trainer_calls, "gradients": gradients, "backward": False, "asked_for": None,
                 "model": model, "rows": list(rows), "begins": list(begins), "lengths": [len(one) for one in ids],
                 "ids": coded(np.concatenate(ids), "<i4"), "logprobs": coded(np.concatenate(logprobs), "<f4"),
                 **more})  # fmt: skip

    def play(self, course: Sequence[Any]) -> "WrittenProcess":
        """Do what a table says: a number is a step of so many tokens, others are methods, with what they are given.

        `during` of a call is what happens within it.
        """
        for word in course:
            name, given = (word, {}) if isinstance(word, str | int) else next(iter(word.items()))
            if isinstance(name, int):
                self.step(name)
            elif name == "rpc":
                with self.rpc(**{key: value for key, value in given.items() if key != "during"}):
                    self.play(given.get("during", ()))
            elif isinstance(given, dict):
                getattr(self, name)(**given)
            else:
                getattr(self, name)(*given if isinstance(given, list) else [given])
        return self

    def write(self, ended: bool = True, by_sampling: dict[str, int] | None = None) -> Path:
        """The file as it lies there."""
        self.put("totals", requests=self.requests, sequences=self.sequences, tokens=self.tokens, aborted=0,
                 by_sampling=by_sampling or {"0": self.requests}, ended=ended)  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines))
        return self.folder

    def opened(self) -> Recording:
        """The recording of all its processes, as rlaudit reads it."""
        for process in self.everyone:
            process.write()
        return open_recording(self.folder)

    def served(self) -> ServedEngine:
        """Its only engine that had requests."""
        (found,) = self.opened().served
        return found
