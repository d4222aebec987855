"""The support test: a hidden top_p=0.95 from 2,560 tokens, and how often a true null is rejected.

    python tests/benchmarks/support_test.py [--nulls 1000]

Raw logprobs under a hidden nucleus: the log ratio is the engines' noise, so k3 stays at the floor and only the tokens
tell. Targets: p < 1e-6 at every share of near-deterministic positions, at most 5 % of true nulls rejected at 5 %.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from rlaudit.meaning.candidates import Semantics
from rlaudit.meaning.honesty import support_tests

sys.path.insert(0, str(Path(__file__).parents[1] / "meaning"))
from simulated_tokens import RAW, Tables, World, draw, logits_of, logprobs_of, simulate

PEAKED = (0.0, 0.6, 0.9)
NOISE = 0.0014
LEVEL = 0.05


def k3(scored):
    log_ratio_T = scored.log_ratio_T
    return float(np.mean(np.expm1(log_ratio_T) - log_ratio_T))


def found_hidden(near_deterministic):
    """ln p, the edge found, k3 with the hidden filter and k3 without it."""
    hidden = World(
        sampled=Semantics(top_p=0.95), reported=RAW, requested=RAW, noise=NOISE, near_deterministic=near_deterministic
    )
    plain = World(requested=RAW, noise=NOISE, near_deterministic=near_deterministic)
    cut, floor = simulate(hidden), simulate(plain)
    test = next(one for one in support_tests(cut, RAW) if one.name == "support-top-p")
    return cut.tokens, test.ln_p, test.estimate, k3(cut), k3(floor)


def rejected_nulls(near_deterministic, nulls):
    """Share of honest samplings, of one model each 50, that each support test rejects at LEVEL."""
    rejected = {}
    each = 50
    for seed in range(math.ceil(nulls / each)):
        world = World(near_deterministic=near_deterministic, seed=1000 + seed)
        generator = np.random.default_rng(world.seed)
        logits = logits_of(world, generator)
        tables = Tables(logits, RAW, np.zeros(logits.shape, dtype=bool))
        probabilities = logprobs_of(logits, RAW, tables.seen)
        for _ in range(min(each, nulls - seed * each)):
            token_ids = draw(probabilities, generator)
            reported = probabilities[np.arange(len(token_ids)), token_ids]
            for test in support_tests(tables.scored(token_ids, reported, world, ()), RAW):
                rejected[test.name] = rejected.get(test.name, 0) + (test.ln_p < math.log(LEVEL))
    return {name: count / nulls for name, count in rejected.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nulls", type=int, default=1000)
    asked = parser.parse_args()
    met = True
    print("hidden top_p=0.95, raw logprobs")
    for peaked in PEAKED:
        tokens, ln_p, edge, cut, floor = found_hidden(peaked)
        met &= ln_p < math.log(1e-6) and cut < 2 * floor
        print(
            f"  {peaked:.0%} near-deterministic: {tokens} tokens, p = 1e{ln_p / math.log(10):.1f}, edge {edge:.4f}, "
            f"k3 {cut:.2e} (floor {floor:.2e})"
        )
    print(f"true nulls rejected at {LEVEL:.0%}, {asked.nulls} trials")
    for peaked in PEAKED[1:]:
        shares = rejected_nulls(peaked, asked.nulls)
        met &= max(shares.values()) <= LEVEL
        print(
            f"  {peaked:.0%} near-deterministic: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        )
    print("targets met" if met else "TARGETS MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
