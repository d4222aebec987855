"""A recording written line by line, as `rlaudit/recording/shipped/rlaudit_recorder.py` documents it."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rlaudit.recording.shipped.rlaudit_recorder import PARTS

BOOT = "0c7e1a52-9b1b-4b13-9a3f-3b1c1d2e3f40"


def coded(values: Any, dtype: str) -> str:
    """Base64 of little-endian numbers."""
    return base64.b64encode(np.asarray(values, dtype=dtype).tobytes()).decode()


def name_of_prompt(ids: list[int]) -> str:
    return hashlib.blake2b(np.asarray(ids, dtype="<i4").tobytes(), digest_size=8).hexdigest()


@dataclass
class WrittenProcess:
    """One file. now: the clock, which moves by `tick` with every line."""

    folder: Path
    pid: int = 100
    parent: int = 1
    now: float = 1000.0
    tick: float = 0.001
    first: dict[str, Any] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    calls: int = 0
    loads: int = 0
    trainer_calls: int = 0
    prompts: set[str] = field(default_factory=set)
    requests: int = 0
    sequences: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        self.put(
            kind="process", schema="rlaudit-recording/1", host="node", boot=BOOT, pid=self.pid, parent=self.parent,
            wall=1.7e9 + self.now, argv=["train.py"], python="3.11.9",
            versions={"vllm": "0.18.1", "torch": "2.10.0"}, environment={}, **self.first,
        )  # fmt: skip
        self.put(kind="hooks", hooked=[target for targets in PARTS.values() for target in targets])

    @property
    def path(self) -> Path:
        return self.folder / f"node-{self.pid}-0a1b2c3d.jsonl"

    def put(self, kind: str, at: float | None = None, **record: Any) -> None:
        self.now += self.tick
        self.lines.append({"kind": kind, "at": self.now if at is None else at, **record})

    def engine(self, number: int = 1, model: str | None = None, **effective: Any) -> None:
        written = {} if model is None else {"model": model}
        self.put("engine", number=number, **{"class": "EngineArgs"}, written=written, effective=effective, error=None)

    def worker(self, instance: str | None = None) -> None:
        self.put("worker", **{"class": "Worker"}, instance=instance, device="cpu", capability=None)

    def sampling(self, number: int = 0, **parameters: Any) -> None:
        self.put("sampling", sampling=number, parameters={"n": 1, "temperature": 1.0, "top_p": 1.0, "top_k": 0,
                 "min_p": 0.0, "repetition_penalty": 1.0, "logprobs": 0, **parameters})  # fmt: skip

    def request(self, prompt: list[int], index: int = 0, sampling: int = 0, **more: Any) -> str:
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
        self.now += self.tick
        self.put("steps", first=self.steps, stamps=coded([self.now], "<f8"), tokens=coded([tokens], "<i4"),
                 engines=None if engine is None else coded([engine], "<i4"))  # fmt: skip
        self.steps += 1
        self.tokens += tokens
        return self.steps - 1

    def sequence(
        self, request: str, prompt: list[int], ids: Any, logprobs: Any, steps: list[list[int]], **more: Any
    ) -> None:
        self.sequences += 1
        self.put("sequence", **{"request": request, "prompt": name_of_prompt(prompt),
                 "ids": coded(ids, "<i4"), "logprobs": None if logprobs is None else coded(logprobs, "<f4"),
                 "steps": steps, "cached": 0, "finish": "length", "visible": len(ids), "resumed": False,
                 **more})  # fmt: skip

    def call(self, what: str, result: Any = None, seconds: float = 0.01, **arguments: Any) -> int:
        """A call. engine: of several that the process built."""
        number = self.begin(what, **arguments)
        self.now += seconds
        self.end(number, what, result)
        return number

    def begin(self, what: str, in_flight: int | None = 0, engine: int | None = None, **arguments: Any) -> int:
        self.calls += 1
        begun = {"call": self.calls, "what": what, "side": "begin", "engine": engine}
        self.put("event", **begun, arguments=arguments, in_flight=in_flight)
        return self.calls

    def end(self, number: int, what: str, result: Any = None, error: str | None = None) -> None:
        self.put("event", call=number, what=what, side="end", result=result, error=error)

    def load(
        self,
        names: tuple[str, ...] = ("embed", "head"),
        inside: int | None = None,
        seconds: float = 0.01,
        number: int = 0,
    ) -> None:
        """One run of tensors. number: of its set."""
        self.loads += 1
        self.put("load", load=self.loads, side="begin", inside=inside, names=[names[0]], in_flight=0)
        self.now += seconds
        known = {line["tensors"] for line in self.lines if line["kind"] == "tensors"}
        if number not in known:
            self.put("tensors", tensors=number, names=list(names), shapes=[[4, 4]] * len(names))
        self.put("load", load=self.loads, side="end", inside=inside, tensors=number, end=self.now, error=None)

    def trainer(self, ids_RT: Any, logprobs_RT: Any, gradients: bool, model: Any = 1, **more: Any) -> None:
        """One call of the trainer's function with rows of one length. model: what it is, or its number."""
        if isinstance(model, int):
            model = {"number": model, "class": "Llama", "dtype": "torch.float32", "trainable": True, "adapters": None,
                     "casts": False}  # fmt: skip
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

    def write(self, ended: bool = True) -> Path:
        """The file as it lies there."""
        self.put("totals", requests=self.requests, sequences=self.sequences, tokens=self.tokens, aborted=0,
                 by_sampling={"0": self.requests}, ended=ended)  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines))
        return self.folder
