"""How often a nominal 95 % interval over prompts holds the truth, with 64 and 256 sequences.

    python -m evidence.benchmarks.bootstrap_coverage [--trials 600] [--seed 0]

Two layouts: every sequence has a prompt of its own, and four completions share one. The truth of each metric is that
of all simulated batches together. Target: 92 to 97 %. Prints every metric, misses included; ends with 1 where one is
missed.
"""

import argparse
import math
import sys

import numpy as np
from simulated_pairs import honest_pairs

from rlaudit.statistics.interval import IntervalMethod
from rlaudit.statistics.measurement.measure import all_metrics, measure

LAYOUTS = ((64, 1), (256, 1), (16, 4), (64, 4))
LOW, HIGH = 0.92, 0.97
TRUTH_PROMPTS = 40_000


def coverage(prompts, completions, trials, seed):
    metrics = [one for one in all_metrics().values() if one.interval is not IntervalMethod.NONE]
    truth = {
        name: found.value
        for name, found in measure(
            honest_pairs(10**6 + seed, TRUTH_PROMPTS // completions, completions=completions), metrics=metrics,
            replicates=2,
        ).items()
    }  # fmt: skip
    held = dict.fromkeys(truth, 0)
    for trial in range(trials):
        measured = measure(honest_pairs(seed + trial, prompts, completions=completions), metrics=metrics, seed=trial)
        for name, found in measured.items():
            if found.low is not None and truth[name] is not None:
                held[name] += found.low <= truth[name] <= found.high
    return {name: count / trials for name, count in held.items() if truth[name] is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found = {layout: coverage(*layout, asked.trials, asked.seed) for layout in LAYOUTS}
    names = sorted(set.intersection(*(set(one) for one in found.values())))
    heads = [f"{prompts * each} seq, {prompts} prompts" for prompts, each in LAYOUTS]
    print(f"{asked.trials} simulations; standard error of a share near 0.95: {math.sqrt(0.0475 / asked.trials):.3f}")
    print(f"{'metric':26}" + "".join(f"{head:>24}" for head in heads))
    missed = 0
    for name in names:
        shares = [found[layout][name] for layout in LAYOUTS]
        outside = [not LOW <= share <= HIGH for share in shares]
        missed += sum(outside)
        cells = "".join(f"{share:>22.3f}{' *' if out else '  '}" for share, out in zip(shares, outside, strict=True))
        print(f"{name:26}{cells}")
    print(f"{missed} of {len(names) * len(LAYOUTS)} outside {LOW} to {HIGH} (marked *)")
    return 1 if missed else 0


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    sys.exit(main())
