"""The trainer side: each distinct sequence is scored once for each way of scoring and each checkpoint.

Engines get the same sampling seeds, so those that agree sample the same tokens, which are scored only once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import shipped
from rlaudit.engines.environments.environment_spec import Environment
from rlaudit.engines.hardware.dtypes import FLOAT32, ieee_float32
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.trainer import __path__ as trainer_folder
from rlaudit.laboratory.treatment import TrainerSettings
from rlaudit.meaning.candidates import MIN_P, NUCLEUS, TOP_K, Semantics, candidate_semantics

SCORE = Path(trainer_folder[0]) / "score.py"
SHIPPED_WITH = (SCORE.with_name("causal_model.py"), SCORE.with_name("read_logits.py"))
SEMANTIC_PARAMETERS = frozenset(parameter.name for parameter in fields(Semantics))
FLOOR_SEQUENCES = 8
CHUNK_POSITIONS = 256
GIB = 1 << 30
TRIAL_PROMPTS, TRIAL_TOKENS = 2, 16
# Memory that scoring takes on each GPU beside the weights: CUDA itself 0.5 GiB; a float32 copy of the head up to 1 GiB
# (KEPT_HEAD_BYTES); 256 rows of 152,000 float32 logits six times over 0.9 GiB (figures of score.py's buffers); a batch
# of 4096 tokens in the widest layer of a 70 B model, 2 x 28,672 wide in bfloat16, 0.5 GiB.
TRAINER_HEADROOM_BYTES = 3 * GIB

SequenceKey = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class ScoringRequest:
    """One way of scoring: what the trainer does, and how the tokens were sampled."""

    trainer: TrainerSettings
    sampling: Mapping[str, Any]

    @property
    def theta_sample(self) -> Semantics:
        """The distribution that the engine was asked to sample from."""
        parameters = {name: value for name, value in self.sampling.items() if name in SEMANTIC_PARAMETERS}
        # vLLM takes 0 and -1 for "no top-k"; Semantics has only 0.
        return Semantics(**{**parameters, "top_k": max(0, int(parameters.get("top_k", 0)))})

    @property
    def theta_train(self) -> Semantics:
        """The distribution from which the trainer assumes the tokens to be sampled."""
        temperature = float(self.sampling["temperature"]) if self.trainer.temperature == "divide" else 1.0
        if not self.trainer.replay_filters:
            return Semantics(temperature=temperature)
        filters = self.theta_sample
        return Semantics(temperature=temperature, top_k=filters.top_k, top_p=filters.top_p, min_p=filters.min_p)

    @property
    def candidates(self) -> tuple[Semantics, ...]:
        """The meanings a reported logprob may have."""
        return candidate_semantics(self.theta_sample, self.theta_train.temperature, self.theta_train)

    @property
    def key(self) -> str:
        """A key that requests which are scored together share."""
        trainer = replace(self.trainer, head_dtype=self.trainer.resolved_head_dtype)
        return repr((trainer, sorted(self.sampling.items())))


@dataclass
class ScoringBatch:
    """The distinct sequences of one request, and how many were requested."""

    request: ScoringRequest
    sequences: dict[SequenceKey, int] = field(default_factory=dict)
    asked: int = 0

    def add(self, prompt: Sequence[int], token_ids: Sequence[int]) -> None:
        """Request one sequence."""
        self.asked += 1
        self.sequences.setdefault((tuple(prompt), tuple(token_ids)), len(self.sequences))

    def besides(self, other: "ScoringBatch") -> "ScoringBatch":
        """Return the sequences that another batch of the same request does not have."""
        remaining = ScoringBatch(self.request, asked=self.asked - other.asked)
        missing = [key for key in self.sequences if key not in other.sequences]
        remaining.sequences = {key: place for place, key in enumerate(missing)}
        return remaining


@dataclass(frozen=True, eq=False)
class Scores:
    """The trainer's scores of one batch: flat arrays over tokens, and the `offsets` of the sequences."""

    batch: ScoringBatch
    arrays: Mapping[str, NDArray[Any]]
    result: Mapping[str, Any]

    def rows_of(self, keys: Sequence[SequenceKey]) -> NDArray[np.int64]:
        """Return the indices of the tokens of these sequences, in this order."""
        offsets = self.arrays["offsets"]
        places = [self.batch.sequences[key] for key in keys]
        return np.concatenate([np.arange(offsets[place], offsets[place + 1]) for place in places])

    def joined(self, other: "Scores") -> "Scores":
        """Return these scores and those of another batch of the same request, which has none of these sequences."""
        offsets, other_offsets = self.arrays["offsets"], other.arrays["offsets"]
        arrays = {
            name: np.concatenate([values, other.arrays[name]])
            for name, values in self.arrays.items() if name != "offsets"
        } | {"offsets": np.concatenate([offsets, offsets[-1] + other_offsets[1:]])}  # fmt: skip
        batch = ScoringBatch(self.batch.request, dict(self.batch.sequences), self.batch.asked + other.batch.asked)
        for key in other.batch.sequences:
            batch.sequences.setdefault(key, len(batch.sequences))
        first, second = self.result["micro_batch_floor"], other.result["micro_batch_floor"]
        floor = {name: _combined(name, first[name], second[name]) for name in first}
        seconds = sum(float(side.arrays["offsets"][-1]) / side.result["tokens_per_second"] for side in (self, other))
        rate = float(arrays["offsets"][-1]) / seconds if seconds > 0 else self.result["tokens_per_second"]
        result = {**self.result, "micro_batch_floor": floor, "tokens_per_second": rate}
        return Scores(batch, arrays, result)

    def by_sequence(self) -> dict[SequenceKey, NDArray[np.float64]]:
        """Return the trainer's logprobs of every sequence."""
        offsets, logprobs = self.arrays["offsets"], self.arrays["trainer_logprobs"].astype(np.float64)
        return {key: logprobs[offsets[place] : offsets[place + 1]] for key, place in self.batch.sequences.items()}


def _combined(name: str, first: float | None, second: float | None) -> float | None:
    """Return a figure of two micro-batch floors: counts add, distances are the larger."""
    figures = [value for value in (first, second) if value is not None]
    if not figures:
        return None
    return sum(figures) if name in {"sequences", "tokens"} else max(figures)


@dataclass(frozen=True)
class Checkpoint:
    """Weights that replace the model's."""

    path: str
    # Distinguishes them from others in the same folder.
    identity: str


def scoring_cell(
    context: RolloutContext, batch: ScoringBatch, environment: Environment, checkpoint: Checkpoint | None = None
) -> Cell:
    """Return the job that scores a batch; with a checkpoint it computes the trainer's logprobs only."""
    request = batch.request
    train = request.theta_train
    head_dtype = request.trainer.resolved_head_dtype
    declared = ieee_float32(context.device, request.trainer.dtype, float32_head=head_dtype in FLOAT32)
    job: dict[str, Any] = {
        "script": shipped(SCORE),
        "model": context.model if checkpoint is None else checkpoint.path,
        "revision": context.revision if checkpoint is None else None,
        "trust_remote_code": context.trust_remote_code,
        "device": context.device,
        "headroom_bytes": TRAINER_HEADROOM_BYTES,
        "dtype": request.trainer.dtype,
        "head_dtype": head_dtype,
        "attention": request.trainer.attention,
        "temperature": train.temperature,
        "top_k": train.top_k,
        "top_p": train.top_p,
        "min_p": train.min_p,
        "sequences": [
            {"prompt_token_ids": list(prompt), "token_ids": list(sampled)} for prompt, sampled in batch.sequences
        ],
        "batch_tokens": request.trainer.batch_tokens,
        "chunk_positions": CHUNK_POSITIONS,
    }
    if checkpoint is None:
        job |= {
            "candidates": [candidate.as_job() for candidate in request.candidates],
            "nucleus_grid": list(NUCLEUS),
            "top_k_grid": list(TOP_K),
            "min_p_grid": list(MIN_P),
            "top_logprobs": 5,
            "floor_sequences": FLOOR_SEQUENCES,
        }
    return Cell(
        job=job,
        command=environment.command,
        variables={**environment.variables, **declared},
        timeout_seconds=60.0 * context.timeout_minutes,
        identity={
            "variables": declared,
            "environment": trainer_identity(environment),
            "model": dict(context.model_identity),
            "accelerator": dict(context.accelerator_identity),
            **({} if checkpoint is None else {"checkpoint": checkpoint.identity}),
        },
        sources=SHIPPED_WITH,
        gpus=context.gpus_to_score.get(request.trainer.dtype),
    )


def trainer_identity(environment: Environment) -> dict[str, Any]:
    """Return what distinguishes trainers: lock and packages, because a given interpreter has no lock."""
    return {
        "name": environment.spec.name,
        "lock": list(environment.lock),
        "versions": dict(environment.versions),
    }


def read_scores(directory: Path, batch: ScoringBatch, result: Mapping[str, Any]) -> Scores:
    """Return the scores of a finished scoring cell."""
    with (directory / "scores.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return Scores(batch, {name: stored[name] for name in stored.files}, result)


def trial_batch(request: ScoringRequest, prompts: Sequence[Sequence[int]]) -> ScoringBatch:
    """Return the first prompts, each with its first half as the prompt and the rest as if it were sampled."""
    batch = ScoringBatch(request)
    for prompt in prompts[:TRIAL_PROMPTS]:
        ids = tuple(prompt[:TRIAL_TOKENS])
        begin = max(1, len(ids) // 2)
        batch.add(ids[:begin], ids[begin:] or ids)
    return batch
