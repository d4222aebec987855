"""Trainings whose truth is known, as recordings: a small model samples, and a trainer scores what it sampled.

`training` is one as TRL's colocated ones are: releases, written and resolved configuration, updates.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from written_recording import FROZEN, RESET, WrittenProcess

from rlaudit.arrays import Floats

VOCABULARY = 40
SCORES = "trl.trainer.utils:selective_log_softmax"
V0, V1 = "vllm.worker.cpu_worker.CPUWorker", "vllm.v1.worker.cpu_worker.CPUWorker"
WRITTEN = {
    "model": "org/m", "dtype": "float32", "max_model_len": 512, "gpu_memory_utilization": 0.3,
    "distributed_executor_backend": "external_launcher",
}  # fmt: skip
VERSIONS = {"torch": "2.6.0", "transformers": "4.56.2", "trl": "0.23.1"}
PAD = 0
Rows = list[tuple[list[int], list[int]]]


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


@lru_cache(maxsize=100_000)
def _drawn(state: int) -> tuple[Floats, Floats]:
    """Return the first logits after a context, and what an update adds. Scores ask again for what was sampled."""
    first, learnt = (np.random.default_rng(one).standard_normal(VOCABULARY) for one in (state, state ^ 0xABCD))
    return 2.0 * first, learnt


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
        first, learnt = _drawn(hash((self.seed, context)) & 0xFFFFFFFF)
        return first + self.drift * version * learnt

    def write(self, folder: Path, ended: bool = True, **sampling: object) -> Path:
        """The recording of a synchronous training in one process."""
        process = WrittenProcess(folder)
        process.engine(model_config={"logprobs_mode": "raw_logprobs" if self.raw else "processed_logprobs"})
        return self.trained(process, **sampling).write(ended)

    def trained(self, process: WrittenProcess, **sampling: object) -> WrittenProcess:
        process.sampling(0, temperature=self.temperature, **sampling)
        rng = np.random.default_rng(self.seed)
        waiting: Rows = []
        for version in range(self.updates + 1):
            if version:
                process.load()
                process.reset()
            if waiting:
                self._train(process, version, waiting)
            if version < self.updates:
                rows = self.sampled(process, rng, version)
                waiting = rows if self.late and self.trainer else []
                if self.trainer and not self.late:
                    self._train(process, version, rows)
        return process

    def sampled(self, process: WrittenProcess, rng: np.random.Generator, version: int) -> Rows:
        """The sequences between two updates."""
        prompts = [[100 + version, number, 7] for number in range(self.prompts) for _ in range(self.samples)]
        requests = [process.request(prompt, index % self.samples) for index, prompt in enumerate(prompts)]
        first = process.steps
        for _ in range(self.tokens):
            process.step(len(prompts))
        rows = []
        for request, prompt in zip(requests, prompts, strict=True):
            length = int(rng.integers(self.tokens // 2, self.tokens + 1))
            ids, reported = self._sampled(rng, self.samples_with(version), tuple(prompt), length)
            process.sequence(request, prompt, ids, reported, [[first, length, 1]])
            rows.append((prompt, ids))
        return rows

    def samples_with(self, version: int) -> int:
        """The version of the weights that the engine has after so many updates."""
        return version

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

    def _train(self, process: WrittenProcess, version: int, rows: Rows) -> None:
        """Old logprobs, those of a reference, and the current ones with gradients, as TRL's GRPO asks for them."""
        width = max(len(ids) for _, ids in rows)
        ids_RT = np.array([[*ids, *[PAD] * (width - len(ids))] for _, ids in rows])
        old_RT, base_RT = (self._scored(rows, which, width) for which in (version, 0))
        if not self.late:
            process.trainer(ids_RT, old_RT, gradients=False)
        process.trainer(ids_RT, base_RT, gradients=False, model=FROZEN)
        process.trainer(ids_RT, old_RT, gradients=True)

    def _scored(self, rows: Rows, version: int, width: int) -> Floats:
        scored_RT = np.zeros((len(rows), width))
        rng = np.random.default_rng((self.seed, version))
        for row, (prompt, ids) in enumerate(rows):
            for place, token in enumerate(ids):
                context = (*prompt, *(one - 1 for one in ids[:place]))
                exact = log_softmax(self.logits(version, context) / self.temperature)[token - 1]
                scored_RT[row, place] = min(0.0, exact + self.noise * rng.standard_normal() * -np.expm1(exact))
        return scored_RT


def effective(worker: str = V1, mode: str | None = "RAW_LOGPROBS", device: str = "cpu", **cache: Any) -> dict[str, Any]:
    """What vLLM resolves, by sections."""
    is_v1 = worker == V1
    return {
        "model_config": {"model": "org/m", "dtype": "torch.float32", "max_model_len": 512, "seed": 0,
                         **({"logprobs_mode": mode} if mode else {})},
        "cache_config": {"enable_prefix_caching": is_v1, "cache_dtype": "auto", "block_size": 16, **cache},
        "parallel_config": {"distributed_executor_backend": "external_launcher" if is_v1 else "mp",
                            "worker_cls": worker},
        "scheduler_config": {"policy": "fcfs", "chunked_prefill_enabled": is_v1, "max_num_seqs": 8},
        "device_config": {"device": device},
    }  # fmt: skip


def process_of(folder: Path, release: str = "0.18.1", environment: dict[str, str] | None = None) -> WrittenProcess:
    """The file of a process without an engine."""
    first = {"versions": {"vllm": release, **VERSIONS}, "environment": environment or {}}
    process = WrittenProcess(folder, first=first)
    process.lines[1]["hooked"] = [RESET, SCORES]
    return process


def engine(process: WrittenProcess, resolved: dict[str, Any], error: str | None = None, **written: Any) -> None:
    """An engine of the process, with what a training of TRL's writes. error: why it was not built."""
    process.engine(written={**WRITTEN, **written}, error=error, **resolved)


def training(
    folder: Path, release: str, worker: str = V1, raw: bool = False, mode: str | None = None, **world: Any
) -> Path:
    """A whole training: what its tokens mean is `raw`, and what its configuration says `mode`."""
    both = {"VLLM_USE_V1": str(int(worker == V1))} if release in ("0.8.5", "0.10.2") else {}
    process = process_of(folder, release, both)
    engine(process, effective(worker, mode))
    process.worker(name=worker)
    return World(raw=raw, **world).trained(process).write()
