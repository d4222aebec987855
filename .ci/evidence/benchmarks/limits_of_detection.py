"""How often a fault is found that is half as large as the limit of detection, or 1.5 times as large.

    python -m evidence.benchmarks.limits_of_detection [--trials 20] [--seed 0]

The limit is that which an honest log of the same world and size reports. Planted are a temperature that neither side
knows of, seen by samples of one prompt and by the trainer's entropies; a mean ratio; sequences that are shifted.
Ends with 1 if fewer than nine in ten of the large ones are a mismatch, or more than three in ten of the small ones.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from compare_tokens import compare
from worlds.sibling_tree import at, tree

from rlaudit.diagnosis.compare import Comparison
from rlaudit.diagnosis.compare_settings import CompareSettings
from rlaudit.layers import Verdict
from rlaudit.meaning.candidates import RAW
from rlaudit.tokens.token_batch import TokenBatch

PROMPTS, SAMPLES, LENGTH, VOCABULARY = 64, 8, 32, 64
# Standard deviation of a logit: about that of bfloat16.
NOISE = 0.04
LARGE, SMALL = 1.5, 0.5
LEAST_FOUND, MOST_FOUND = 0.9, 0.3
SETTINGS = CompareSettings(replicates=400)


def siblings(rng: np.random.Generator, hotter: float) -> TokenBatch:
    """Samples of one prompt, drawn at 1/T = 1 + hotter, which neither side knows of."""
    drawn, plain = at(1.0 / (1.0 + hotter)), at()
    return tree(rng, PROMPTS, SAMPLES, LENGTH, sampler=drawn, report=plain, trainer=plain, noise=NOISE)


def tokens(rng: np.random.Generator, hotter: float = 0.0) -> TokenBatch:
    """Sequences of contexts of their own, one of a prompt, with the trainer's entropies."""
    sequences = PROMPTS * SAMPLES
    logits_NV = rng.exponential(1.0, (sequences * LENGTH, VOCABULARY)) * rng.uniform(1.0, 6.0, (sequences * LENGTH, 1))
    cumulated_NV = np.cumsum(at(1.0 / (1.0 + hotter))(logits_NV), axis=1)
    token_N = (cumulated_NV < rng.random((len(logits_NV), 1)) * cumulated_NV[:, -1:]).sum(axis=1)
    p_NV = at()(logits_NV)
    logprob_N = np.log(p_NV[np.arange(len(p_NV)), token_N])
    off_N = NOISE * rng.standard_normal(len(p_NV)) * -np.expm1(logprob_N)
    return TokenBatch(
        rollout_logprobs_T=logprob_N,
        trainer_logprobs_T=np.minimum(logprob_N + off_N, 0.0),
        token_id_T=token_N,
        position_T=np.tile(np.arange(LENGTH), sequences),
        sequence_T=np.repeat(np.arange(sequences), LENGTH),
        prompt_S=np.arange(sequences),
        prompt_names_S=np.arange(sequences),
        sample_names_S=np.zeros(sequences, dtype=np.int64),
        token_columns={"trainer_entropy": -(p_NV * np.log(np.maximum(p_NV, 1e-300))).sum(axis=1)},
    )


def biased(rng: np.random.Generator, below: float) -> TokenBatch:
    """Tokens whose trainer gives each so much less than is reported."""
    batch = replace(tokens(rng), token_columns={})
    return replace(batch, trainer_logprobs_T=batch.trainer_logprobs_T + np.log1p(-below))


def shifted(rng: np.random.Generator, share: float) -> TokenBatch:
    """Tokens of which a share of the sequences is scored one place off; a whole number of them, away from the limit."""
    batch = replace(tokens(rng), token_columns={})
    wanted = share * batch.sequences
    limit = 3.0
    many = int(np.ceil(wanted)) if wanted > limit else int(wanted)
    trainer_SL = batch.trainer_logprobs_T.reshape(batch.sequences, LENGTH).copy()
    trainer_SL[:many] = np.roll(trainer_SL[:many], 1, axis=1)
    return replace(batch, trainer_logprobs_T=trainer_SL.ravel())


# What is planted, and the limit that speaks of it.
PLANTED: Mapping[str, tuple[Callable[[np.random.Generator, float], TokenBatch], str]] = {
    "a temperature, by samples of one prompt": (siblings, "inverse_temperature"),
    "a temperature, by entropies": (tokens, "inverse_temperature"),
    "a mean ratio": (biased, "mean_ratio"),
    "shifted sequences": (shifted, "shifted"),
}


def judged(batch: TokenBatch) -> Comparison:
    """Compare a table as a log is."""
    return compare([batch], RAW, RAW, SETTINGS)


def found(name: str, trials: int, seed: int) -> tuple[int, int]:
    """Return how many of so many logs are a mismatch, with large faults and with small ones."""
    plant, limit_of = PLANTED[name]
    counts = {LARGE: 0, SMALL: 0}
    for trial in range(trials):
        limits = judged(plant(np.random.default_rng((seed, trial)), 0.0)).limits
        limit = getattr(limits, limit_of)
        for times in counts:
            layers = judged(plant(np.random.default_rng((seed, trial, 1)), times * limit)).layers
            counts[times] += layers[0].verdict is Verdict.MISMATCH
    return counts[LARGE], counts[SMALL]


def keeps(large: int, small: int, trials: int) -> bool:
    """Return whether large faults were found and small ones were not, as often as promised."""
    return large >= LEAST_FOUND * trials and small <= MOST_FOUND * trials


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    holds = True
    for name in PLANTED:
        large, small = found(name, asked.trials, asked.seed)
        print(f"{name:42} {LARGE:g} times the limit: {large} of {asked.trials}, {SMALL:g}: {small}", flush=True)
        holds &= keeps(large, small, asked.trials)
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
