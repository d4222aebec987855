"""Trainings whose truth is known, as recordings: a small model samples, and a trainer scores what it sampled.

`training` is one as TRL's colocated ones are: releases, written and resolved configuration, updates.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from written_recording import WrittenProcess

from rlaudit.arrays import Floats

VOCABULARY = 40
RESET = "vllm.v1.engine.core:EngineCore.reset_prefix_cache"
PAUSE = "vllm.v1.engine.async_llm:AsyncLLM.pause_generation"
SCORES = "trl.trainer.utils:selective_log_softmax"
V0, V1 = "vllm.worker.cpu_worker.CPUWorker", "vllm.v1.worker.cpu_worker.CPUWorker"
WRITTEN = {
    "model": "org/m", "dtype": "float32", "max_model_len": 512, "gpu_memory_utilization": 0.3,
    "distributed_executor_backend": "external_launcher",
}  # fmt: skip
VERSIONS = {"torch": "2.6.0", "transformers": "4.56.2", "trl": "0.23.1"}
PAD = 0


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


@dataclass(frozen=True)
class World:
    """raw: the engine reports logprobs before the temperature. late: the trainer scores a step's sequences when the
    engine has the weights of the next one, which are its own. drift: of the logits at each update. noise: in nats.
    """

    seed: int = 0
    temperature: float = 0.7
    raw: bool = False
    updates: int = 3
    prompts: int = 8
    samples: int = 4
    tokens: int = 24
    noise: float = 1e-3
    late: bool = False
    drift: float = 0.3
    trainer: bool = True

    def logits(self, version: int, context: tuple[int, ...]) -> Floats:
        """Logits of a model that has learnt for so many updates."""
        state = hash((self.seed, context)) & 0xFFFFFFFF
        rng = np.random.default_rng(state)
        logits = 2.0 * rng.standard_normal(VOCABULARY)
        return logits + self.drift * version * np.random.default_rng(state ^ 0xABCD).standard_normal(VOCABULARY)

    def write(self, folder: Path, ended: bool = True, **sampling: object) -> Path:
        """The recording of a synchronous training in one process."""
        process = WrittenProcess(folder)
        process.engine(model_config={"logprobs_mode": "raw_logprobs" if self.raw else "processed_logprobs"})
        process.sampling(0, temperature=self.temperature, **sampling)
        rng = np.random.default_rng(self.seed)
        waiting: list[tuple[list[int], list[int]]] = []
        for version in range(self.updates + 1):
            if version:
                process.load()
                process.call(RESET, result=True)
            if waiting:
                self._train(process, version, waiting)
            if version < self.updates:
                rows = self._step(process, rng, version)
                waiting = rows if self.late and self.trainer else []
                if self.trainer and not self.late:
                    self._train(process, version, rows)
        return process.write(ended)

    def _step(
        self, process: WrittenProcess, rng: np.random.Generator, version: int
    ) -> list[tuple[list[int], list[int]]]:
        prompts = [[100 + version, number, 7] for number in range(self.prompts) for _ in range(self.samples)]
        requests = [process.request(prompt, index % self.samples) for index, prompt in enumerate(prompts)]
        first = process.steps
        for _ in range(self.tokens):
            process.step(len(prompts))
        rows = []
        for request, prompt in zip(requests, prompts, strict=True):
            length = int(rng.integers(self.tokens // 2, self.tokens + 1))
            ids, reported = self._sampled(rng, version, tuple(prompt), length)
            process.sequence(request, prompt, ids, reported, [[first, length, 1]])
            rows.append((prompt, ids))
        return rows

    def _sampled(
        self, rng: np.random.Generator, version: int, prompt: tuple[int, ...], length: int
    ) -> tuple[list[int], list[float]]:
        ids: list[int] = []
        reported = []
        for _ in range(length):
            logits = self.logits(version, (*prompt, *ids))
            at_temperature = log_softmax(logits / self.temperature)
            token = int(rng.choice(VOCABULARY, p=np.exp(at_temperature)))
            reported.append((log_softmax(logits) if self.raw else at_temperature)[token])
            ids.append(token)
        return [one + 1 for one in ids], reported

    def _train(self, process: WrittenProcess, version: int, rows: list[tuple[list[int], list[int]]]) -> None:
        """Old logprobs, those of a reference, and the current ones with gradients, as TRL's GRPO asks for them."""
        width = max(len(ids) for _, ids in rows)
        ids_RT = np.array([[*ids, *[PAD] * (width - len(ids))] for _, ids in rows])
        old_RT, base_RT = (self._scored(rows, which, width) for which in (version, 0))
        frozen = {"number": 2, "class": "Llama", "dtype": "torch.float32", "trainable": False, "adapters": None}
        if not self.late:
            process.trainer(ids_RT, old_RT, gradients=False)
        process.trainer(ids_RT, base_RT, gradients=False, model=frozen)
        process.trainer(ids_RT, old_RT, gradients=True)

    def _scored(self, rows: list[tuple[list[int], list[int]]], version: int, width: int) -> Floats:
        scored_RT = np.zeros((len(rows), width))
        rng = np.random.default_rng((self.seed, version))
        for row, (prompt, ids) in enumerate(rows):
            for place, token in enumerate(ids):
                context = (*prompt, *(one - 1 for one in ids[:place]))
                exact = log_softmax(self.logits(version, context) / self.temperature)[token - 1]
                scored_RT[row, place] = min(0.0, exact + self.noise * rng.standard_normal() * -np.expm1(exact))
        return scored_RT


def effective(worker: str = V1, mode: str | None = "RAW_LOGPROBS", **cache: Any) -> dict[str, Any]:
    """What vLLM resolves, by sections."""
    is_v1 = worker == V1
    return {
        "model_config": {"model": "org/m", "dtype": "torch.float32", "max_model_len": 512, "seed": 0,
                         **({"logprobs_mode": mode} if mode else {})},
        "cache_config": {"enable_prefix_caching": is_v1, "cache_dtype": "auto", "block_size": 16, **cache},
        "parallel_config": {"distributed_executor_backend": "external_launcher" if is_v1 else "mp",
                            "worker_cls": worker},
        "scheduler_config": {"policy": "fcfs", "chunked_prefill_enabled": is_v1, "max_num_seqs": 8},
        "device_config": {"device": "cpu"},
    }  # fmt: skip


def process_of(
    folder: Path, release: str = "0.18.1", environment: dict[str, str] | None = None, **first: Any
) -> WrittenProcess:
    """The file of a process without an engine."""
    process = WrittenProcess(folder)
    process.lines[0].update(versions={"vllm": release, **VERSIONS}, environment=environment or {}, **first)
    process.lines[1]["hooked"] = [RESET, SCORES]
    return process


def engine(
    process: WrittenProcess, resolved: dict[str, Any] | None, error: str | None = None, name: str = "EngineArgs",
    **written: Any,
) -> None:  # fmt: skip
    number = 1 + sum(line["kind"] == "engine" for line in process.lines)
    process.put("engine", number=number, **{"class": name}, written={**WRITTEN, **written}, effective=resolved,
                error=error)  # fmt: skip


def counted(process: WrittenProcess, by_sampling: dict[str, int], ended: bool = True) -> Path:
    """Write it, with counts of requests for each kind of sampling parameters."""
    folder = process.write(ended)
    lines = process.path.read_text().splitlines()
    process.path.write_text(
        "\n".join([*lines[:-1], json.dumps({**json.loads(lines[-1]), "by_sampling": by_sampling})]) + "\n"
    )
    return folder


def training(
    folder: Path, release: str, worker: str = V1, raw: bool = False, mode: str | None = None, **world: Any
) -> Path:
    """A whole training: what its tokens mean is `raw`, and what its configuration says `mode`."""
    World(raw=raw, **world).write(folder)
    (file,) = folder.glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0].update(
        versions={"vllm": release, **VERSIONS},
        environment={"VLLM_USE_V1": str(int(worker == V1))} if release in ("0.8.5", "0.10.2") else {},
    )
    lines[1]["hooked"] = [RESET, SCORES]
    place = next(number for number, line in enumerate(lines) if line["kind"] == "engine")
    lines[place].update(written=WRITTEN, effective=effective(worker, mode))
    kind = {"kind": "worker", "at": lines[place]["at"], "class": worker, "device": "cpu", "capability": None}
    lines.insert(place + 1, kind)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
