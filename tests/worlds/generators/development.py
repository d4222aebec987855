"""Gaussian logits with a dominant token at most positions, lengths even, noise independent for each logit.

The one family that thresholds of the attribution may be tuned on.
"""

import numpy as np

from rlaudit.arrays import Integers
from worlds.generator import Generator, Logits, Scales

VOCABULARY = 256
TOP_P = (0.99, 0.95, 0.9)


def lengths(sequences: int, rng: np.random.Generator) -> Integers:
    """24 to 72 tokens."""
    return rng.integers(24, 73, sequences)


def logits(tokens: int, rng: np.random.Generator) -> Logits:
    """Normal with a standard deviation of 1.5 to 3.5; at six positions of ten one token stands out."""
    spread = rng.uniform(1.5, 3.5, (tokens, 1)).astype(np.float32)
    values = spread * rng.standard_normal((tokens, VOCABULARY), dtype=np.float32)
    standing_out = np.where(rng.random(tokens) < 0.6, rng.uniform(6.0, 14.0, tokens), 0.0)
    values[np.arange(tokens), values.argmax(axis=1)] += standing_out.astype(np.float32)
    return values


def noise(scale_T: Scales, sequence_T: Integers, rng: np.random.Generator) -> Logits:
    """Normal, independent."""
    errors = rng.standard_normal((len(scale_T), VOCABULARY), dtype=np.float32)
    return errors * scale_T[:, None].astype(np.float32)


def filters(dose: int, rng: np.random.Generator) -> dict[str, float]:
    """A nucleus."""
    return {"top_p": TOP_P[dose]}


GENERATOR = Generator(
    name="development",
    prompts=48,
    samples=2,
    vocabulary=VOCABULARY,
    temperature=1.0,
    floor=0.004,
    lengths=lengths,
    logits=logits,
    noise=noise,
    filters=filters,
)
