"""Trainings whose truth is known, as recordings: a small model samples, and a trainer scores what it sampled."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from written_recording import WrittenProcess

from rlaudit.arrays import Floats

VOCABULARY = 40
RESET = "vllm.v1.engine.core:EngineCore.reset_prefix_cache"
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
