"""Requests and scores made by hand, for tests that judge them."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlaudit.arrays import Floats
from rlaudit.laboratory.studies.updates.records import Flight
from rlaudit.laboratory.studies.updates.scored_tokens import ScoredTokens

PROMPTS = 16


def flight(run: str, prompt: int, versions: Sequence[int | None], **more: Any) -> Flight:
    """A request that completed with one token per version; its tokens tell it from others."""
    length = len(versions)
    sample = int(more.pop("sample", 0))
    mark = zlib.crc32(f"{run} {prompt} {sample}".encode())
    values: dict[str, Any] = {
        "case": "case",
        "run": run,
        "prompt": prompt,
        "sample": sample,
        "max_tokens": length,
        "prompt_token_ids": (prompt, 1, 2, 3),
        "token_ids": (mark, *range(1, length)) if length else (),
        "logprobs": tuple(-1.0 for _ in range(length)),
        "versions": tuple(versions),
        "cached_tokens": 0,
        "finish_reason": "length",
        "ends": 1,
        "lost": False,
        "error": None,
        "submitted": 0,
        "finished": 1,
    }
    return Flight(**{**values, **more})


def run_of(run: str, versions: Sequence[int | None], samples: int = 2, **more: Any) -> list[Flight]:
    """The same request for every prompt."""
    return [
        flight(run, prompt, versions, sample=sample, **more) for prompt in range(PROMPTS) for sample in range(samples)
    ]


class ScoredFlights:
    """Collects flights with the log ratios that each checkpoint is to give them."""

    def __init__(self) -> None:
        self.flights: list[Flight] = []
        self.scores: dict[str, dict[Any, Floats]] = {}
        self.noise = np.random.default_rng(7)

    def add(self, flights: Sequence[Flight], spread: float = 1e-4, **checkpoints: float) -> "ScoredFlights":
        """Log ratios of size `checkpoints[name]` (v1=0.2: version 1), with a little spread of their own."""
        self.flights += flights
        for one in flights:
            for name, size in checkpoints.items():
                length = len(one.token_ids)
                apart = size * self.noise.choice([-1.0, 1.0], length) * self.noise.uniform(0.5, 1.5, length)
                apart += self.noise.normal(0, spread, length)
                logprobs = np.minimum(np.asarray(one.logprobs) + apart, -1e-6)
                self.scores.setdefault(name.removeprefix("v"), {})[one.prompt_token_ids, one.token_ids] = logprobs
        return self

    def tokens(self, held: str = "1") -> ScoredTokens:
        return ScoredTokens(self.flights, self.scores, held)
