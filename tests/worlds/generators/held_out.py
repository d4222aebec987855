"""Zipf-like logits, geometric lengths, noise that logits share and whose size differs between tokens and sequences.

Never used for tuning: the confusion matrix that counts is the one on this family.
"""

import numpy as np

from rlaudit.arrays import Integers
from worlds.generator import Generator, Logits, Scales

VOCABULARY = 320
HIDDEN_SIZE = 48
TOP_P = (0.985, 0.94, 0.88)
TOP_K = (80, 20, 8)
MIN_P = (0.01, 0.04, 0.1)


def lengths(sequences: int, rng: np.random.Generator) -> Integers:
    """16 tokens and more, 48 on average, at most 150: few long ones, as in practice."""
    return np.minimum(16 + rng.geometric(1 / 32, sequences), 150).astype(np.int64)


def logits(tokens: int, rng: np.random.Generator) -> Logits:
    """-a log(rank) with a from 1 to 4.5 over a random order, blurred; half of the positions nearly decided."""
    rank = rng.permuted(np.broadcast_to(np.arange(1, VOCABULARY + 1, dtype=np.float32), (tokens, VOCABULARY)), axis=1)
    steep = np.where(rng.random(tokens) < 0.5, rng.uniform(3.0, 6.5, tokens), rng.uniform(1.0, 2.5, tokens))
    values = -steep[:, None].astype(np.float32) * np.log(rank)
    blurred: Logits = values + rng.gumbel(0.0, 0.35, values.shape).astype(np.float32) + np.float32(9.0)
    return blurred


def noise(scale_T: Scales, sequence_T: Integers, rng: np.random.Generator) -> Logits:
    """A perturbed hidden state through an output matrix, its size heavy-tailed by token and uneven by sequence."""
    sequences = int(sequence_T.max(initial=-1)) + 1
    uneven_S = np.exp(0.25 * rng.standard_normal(sequences) - 0.03)
    degrees = 8.0
    heavy_T = np.sqrt((degrees - 2.0) / rng.chisquare(degrees, len(scale_T)))
    size_T = (scale_T * uneven_S[sequence_T] * heavy_T).astype(np.float32)
    output = rng.standard_normal((HIDDEN_SIZE, VOCABULARY), dtype=np.float32) / np.float32(np.sqrt(HIDDEN_SIZE))
    state = rng.standard_normal((len(scale_T), HIDDEN_SIZE), dtype=np.float32)
    return (state * size_T[:, None]) @ output


def filters(dose: int, rng: np.random.Generator) -> dict[str, float]:
    """A nucleus, the k best, or a share of the best."""
    kind = rng.integers(3)
    if kind == 0:
        return {"top_p": TOP_P[dose]}
    return {"top_k": TOP_K[dose]} if kind == 1 else {"min_p": MIN_P[dose]}


GENERATOR = Generator(
    name="held-out",
    prompts=40,
    samples=3,
    vocabulary=VOCABULARY,
    temperature=0.8,
    floor=0.007,
    lengths=lengths,
    logits=logits,
    noise=noise,
    filters=filters,
)
