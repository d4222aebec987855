"""Honest token tables of any size and shape: the tokens were drawn from what the engine reports, and nothing is wrong.

Logits are those of a language model from nearly certain to nearly uniform; every column that causes are looked for in
varies, and has nothing to do with how far the two sides are apart.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.special import log_softmax

from rlaudit.tokens.token_batch import TokenBatch

VOCABULARY = 200  # holds an entropy of 5 nats
TOPS = 3
SHIFT = 0.05


class Shape(StrEnum):
    """How the trainer's logprobs differ from the engine's. SHIFT alone makes the mean ratio other than 1."""

    EQUAL = "equal"
    NOISE = "noise"
    LOUD = "loud noise"
    HEAVY = "heavy tails"
    SHIFT = "constant shift"
    TIES = "ties"


@dataclass(frozen=True)
class Size:
    """prompts of `samples` sequences of `length` tokens each."""

    prompts: int
    samples: int
    length: int

    @property
    def name(self) -> str:
        """As a row of a table."""
        return f"{self.prompts} x {self.samples} x {self.length}"


SIZES = (
    Size(1, 1, 10),
    Size(1, 1, 30),
    Size(2, 1, 40),
    Size(3, 2, 40),
    Size(8, 2, 40),
    Size(16, 2, 64),
    Size(32, 1, 128),
    Size(64, 1, 512),
)
ENTROPIES = (1e-5, 1e-4, 3e-4, 1e-3, 1e-2, 0.1, 0.5, 1.5, 3.0, 5.0)
NOISE = {Shape.NOISE: 0.05, Shape.LOUD: 0.5, Shape.HEAVY: 0.1}


def logits_of_entropy(tokens: int, entropy: float, rng: np.random.Generator) -> np.ndarray:
    """(T, V) whose mean entropy is about `entropy` nats: one token leads, by how much differs from place to place."""
    logits_TV = rng.standard_normal((tokens, VOCABULARY))
    leads_T = rng.uniform(0.7, 1.3, tokens)
    low, high = -5.0, 40.0
    for _ in range(30):
        lead = (low + high) / 2
        some = logits_TV[:200].copy()
        some[:, 0] += lead * leads_T[:200]
        logprobs = log_softmax(some, axis=1)
        found = float(-(np.exp(logprobs) * logprobs).sum(axis=1).mean())
        low, high = (lead, high) if found > entropy else (low, lead)
    logits_TV[:, 0] += high * leads_T
    return logits_TV


def honest_table(seed: int, size: Size, shape: Shape, entropy: float, columns: bool = True) -> TokenBatch:
    """columns: with everything that causes are looked for in, besides the trainer's entropy."""
    rng = np.random.default_rng((seed, *size.name.encode(), *shape.value.encode()))
    sequences = size.prompts * size.samples
    tokens = sequences * size.length
    logits_TV = logits_of_entropy(tokens, entropy, rng)
    if shape is Shape.TIES:
        logits_TV = np.zeros((tokens, VOCABULARY))
    engine_TV = log_softmax(logits_TV + _noise(shape, logits_TV.shape, rng), axis=1)
    trainer_TV = log_softmax(logits_TV, axis=1)
    gumbel_TV = rng.gumbel(size=engine_TV.shape)
    token_T = (engine_TV + gumbel_TV).argmax(axis=1)
    rows = np.arange(tokens)
    lower = SHIFT if shape is Shape.SHIFT else 0.0
    table = TokenBatch(
        rollout_logprobs_T=engine_TV[rows, token_T],
        trainer_logprobs_T=trainer_TV[rows, token_T] - lower,
        token_id_T=token_T,
        position_T=np.tile(np.arange(size.length), sequences),
        sequence_T=np.repeat(np.arange(sequences), size.length),
        prompt_S=np.repeat(np.arange(size.prompts), size.samples),
        prompt_names_S=np.repeat(np.arange(size.prompts), size.samples),
        sample_names_S=np.tile(np.arange(size.samples), size.prompts),
        token_columns={"trainer_entropy": -(np.exp(trainer_TV) * trainer_TV).sum(axis=1)},
    )
    return _with_columns(table, engine_TV, trainer_TV, rng) if columns else table


def _noise(shape: Shape, there: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if shape is Shape.HEAVY:
        return NOISE[shape] * rng.standard_t(3, there)
    return NOISE.get(shape, 0.0) * rng.standard_normal(there)


def _with_columns(
    table: TokenBatch, engine_TV: np.ndarray, trainer_TV: np.ndarray, rng: np.random.Generator
) -> TokenBatch:
    ids_TK = np.argsort(-trainer_TV, axis=1)[:, :TOPS]
    version_S = rng.integers(5, 10, table.sequences)
    ids_S = np.empty(table.sequences, dtype=object)
    ids_S[:] = [np.arange(length) for length in rng.integers(5, 60, table.sequences)]
    return replace(
        table,
        token_columns={
            **table.token_columns,
            "rollout_version": version_S[table.sequence_T],
            "trainer_version": np.full(table.tokens, 9),
            "base_logprob": np.minimum(table.trainer_logprobs_T + 0.5 * rng.standard_normal(table.tokens), 0.0),
        },
        sequence_columns={
            "cached_tokens": 16 * rng.integers(0, 3, table.sequences),
            "batch_id": rng.integers(0, 6, table.sequences),
        },
        rollout_top_ids_TK=ids_TK,
        rollout_top_logprobs_TK=np.take_along_axis(engine_TV, ids_TK, axis=1),
        trainer_top_ids_TK=ids_TK,
        trainer_top_logprobs_TK=np.take_along_axis(trainer_TV, ids_TK, axis=1),
        prompt_token_ids_S=ids_S,
    )
