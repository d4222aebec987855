"""What is planted in real engines, release by release: how each rollout is made, what is claimed of it, and the truth.

A default of generation_config.json is planted as what a server makes of it: sampling parameters that are in force
although nobody asked for them. An offset and a lost token are edits of the recorded logprobs, which is all that those
faults are.

What needs weights that change under a running engine is in update_plants.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from packaging.version import Version

from rlaudit.meaning.candidates import Semantics
from rlaudit.tokens.token_batch import TokenBatch
from rlaudit.vllm.resolution.engine import EngineKind, has_v0

# One release for each engine, where no interpreter says otherwise.
STANDARD = ("0.8.5", "0.18.1")
TEMPERATURE = 0.7
PLAIN: Mapping[str, Any] = MappingProxyType({"temperature": TEMPERATURE})
FLOAT32: Mapping[str, Any] = MappingProxyType({"dtype": "float32"})
AT_TEMPERATURE = Semantics(TEMPERATURE)
Edit = Callable[[TokenBatch], TokenBatch]


@dataclass(frozen=True)
class EnginePlant:
    """causes: the truth, none for a clean rollout. claimed: what whoever asked believes the tokens were sampled at.

    sampling, trainer, engine_args: as in a recipe's block; levels: factor levels of the engine. edit: what happens to
    the record. floor: name of the plant without this cause whose k2 is the noise floor; None: the trainer's own.
    """

    name: str
    version: str
    causes: tuple[str, ...] = ()
    claimed: Semantics = AT_TEMPERATURE
    sampling: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    trainer: Mapping[str, Any] = field(default_factory=lambda: FLOAT32)
    engine_args: Mapping[str, Any] = field(default_factory=lambda: FLOAT32)
    levels: Mapping[str, str] = field(default_factory=dict)
    edit: Edit | None = None
    floor: str | None = None

    def as_block(self, device: str) -> dict[str, Any]:
        """A block of a recipe with this rollout as its only arm, on cuda or cpu."""
        # Blocks of the KV cache are 128 tokens on a CPU, longer than a prompt: no prompt would be found in it.
        of_device = {"block_size": 16} if device == "cpu" else {}
        return {
            "name": self.name,
            "candidate": {"version": self.version, "engine": engine_of(self.version), "levels": dict(self.levels)},
            "sampling": dict(self.sampling),
            "trainer": dict(self.trainer),
            "engine_args": {"max_model_len": 512, **of_device, "enforce_eager": True, **self.engine_args},
            "repeats": 0,
        }


def engine_of(release: str) -> EngineKind:
    """The engine that is planted in: V0 where the release has it, as its V1 has no processed logprobs to compare."""
    return "V0" if has_v0(Version(release)) else "V1"


def off_by_one(batch: TokenBatch) -> TokenBatch:
    """The trainer's logprobs of every sequence come one token late."""
    trainer_T = batch.trainer_logprobs_T.copy()
    for first, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        trainer_T[first:end] = np.roll(trainer_T[first:end], 1)
    return replace(batch, trainer_logprobs_T=trainer_T)


def dropped_token(batch: TokenBatch) -> TokenBatch:
    """In every third sequence weights change in the middle, and the first logprob after that is lost."""
    rollout_T = batch.rollout_logprobs_T.copy()
    version_T = np.zeros(batch.tokens, dtype=np.int64)
    for sequence in range(0, batch.sequences, 3):
        first, end = int(batch.offsets[sequence]), int(batch.offsets[sequence + 1])
        middle = (first + end) // 2
        version_T[middle:end] = 1
        rollout_T[middle : end - 1] = rollout_T[middle + 1 : end]
    columns = {**batch.token_columns, "rollout_version": version_T, "trainer_version": np.ones_like(version_T)}
    return replace(batch, rollout_logprobs_T=rollout_T, token_columns=columns)


def _plants_of(version: str) -> tuple[EnginePlant, ...]:
    """What both engines can be made to do; V0 has one mode of logprobs, processed."""
    processed = {} if engine_of(version) == "V0" else {"logprobs-mode": "processed"}
    healthy = EnginePlant(f"clean on {version}", version, levels=processed)
    forgot = {**FLOAT32, "temperature": "ignore"}
    filtered = {**PLAIN, "top_k": 20}
    penalised = {**PLAIN, "repetition_penalty": 1.1}
    return (
        healthy,
        replace(healthy, name=f"trainer temperature on {version}", causes=("trainer-temperature",), trainer=forgot),
        replace(
            healthy,
            name=f"filters not replayed on {version}",
            causes=("filters-not-replayed",),
            claimed=Semantics(TEMPERATURE, top_k=20),
            sampling=filtered,
        ),
        replace(healthy, name=f"penalty on {version}", causes=("penalty",), sampling=penalised),
        replace(healthy, name=f"off by one on {version}", causes=("off-by-one",), edit=off_by_one),
        replace(
            healthy, name=f"dropped token on {version}", causes=("token-dropped-after-resume",), edit=dropped_token
        ),
        replace(
            healthy,
            name=f"bfloat16 head of the trainer on {version}",
            causes=("head-precision",),
            # Bodies in float32: beside the noise of bfloat16 bodies one rounded head adds a third and is not named.
            trainer={**FLOAT32, "head_dtype": "bfloat16"},
            floor=healthy.name,
        ),
    )


def _plants_of_v1(version: str) -> tuple[EnginePlant, ...]:
    raw = {"logprobs-mode": "raw"}
    at_one = {"temperature": 1.0}
    bf16 = {"dtype": "bfloat16"}
    return (
        EnginePlant(f"raw mode on {version}", version, ("raw-logprobs",), levels=raw),
        EnginePlant(
            f"hidden top-k on {version}", version, ("hidden-truncation",), Semantics(),
            {**at_one, "top_k": 20}, levels=raw,
        ),
        EnginePlant(
            f"bfloat16 bodies on {version}", version, ("body-precision",),
            trainer={**bf16, "head_dtype": "float32"}, engine_args=bf16,
            levels={"logprobs-mode": "processed", "fp32-head": "both"},
        ),
    )  # fmt: skip


def engine_plants(releases: Sequence[str] = STANDARD) -> tuple[EnginePlant, ...]:
    """All that these releases can be planted with."""
    of_v1 = [release for release in releases if engine_of(release) == "V1"]
    return tuple(plant for plants in (*map(_plants_of, releases), *map(_plants_of_v1, of_v1)) for plant in plants)
