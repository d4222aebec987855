"""Sibling agreement on trees of known distributions: honest ones that are convicted, deviations that are acquitted.

    python tests/benchmarks/sibling_nulls.py [--tables 5000] [--seed 1]     honest tables of every size and entropy
    python tests/benchmarks/sibling_nulls.py --power [--tables 40]          what is told of each deviation, by size

Honest tables: 8 x 2 to 1,024 x 16 samples, entropies from collapsed to uniform, ragged ends, noise of 0 to 0.05 on a
logit. Printed: convictions of each of the three sums, the share of 95 % intervals that hold 0, and the spread of z.
Power: mean z of each sum, the step of 1/T that the sharpness says, the share of tables that convict, and the top-p
below which none was in force.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from rlaudit.meaning.siblings import Agreement, agreement, shared_draws  # noqa: E402
from rlaudit.worlds.sibling_tree import at, tree  # noqa: E402

SIZES = [(8, 2), (8, 8), (16, 4), (32, 2), (32, 16), (64, 4), (64, 8), (128, 16), (256, 8), (1024, 4), (1024, 16)]
# Scales of exponential logits: 0.01 is uniform, 30 has collapsed.
SHARPNESS = [(0.01, 0.5), (0.5, 2.0), (1.0, 6.0), (3.0, 12.0), (8.0, 30.0), (0.5, 30.0)]
NOISE = [0.0, 0.0, 0.01, 0.05]
TEMPERATURES = [0.7, 1.0, 1.3]
POWER_SIZES = [(64, 8), (512, 8), (512, 16)]
DEVIATIONS = {
    "honest": at(),
    "T=0.7": at(0.7),
    "T=0.9": at(0.9),
    "T=0.95": at(0.95),
    "T=1.05": at(1.05),
    "top-p 0.8": at(top_p=0.8),
    "top-p 0.95": at(top_p=0.95),
    "top-p 0.98": at(top_p=0.98),
    "top-k 50": at(top_k=50),
    "min-p 0.02": at(min_p=0.02),
}
SUMS = ("excess", "step", "odds")
LEAST = {"excess": 0.01, "step": 0.03, "odds": 0.03}


def main() -> int:
    """Print; 1 where more honest tables were convicted than one in a thousand."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--tables", type=int, default=5000)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--power", action="store_true")
    options = asked.parse_args()
    rng = np.random.default_rng(options.seed)
    return power(rng, options.tables) if options.power else nulls(rng, options.tables)


def nulls(rng: np.random.Generator, tables: int) -> int:
    """Honest tables; z, whether convicted and whether the interval holds 0, by size and by entropy."""
    told: dict[str, list[tuple[float, bool, bool]]] = defaultdict(list)
    silent = 0
    for number in range(tables):
        size = SIZES[number % len(SIZES)]
        sharpness = SHARPNESS[int(rng.integers(len(SHARPNESS)))]
        sampler = at(float(rng.choice(TEMPERATURES)))
        found = _agreement(
            rng, size, sampler, sampler, sharpness, noise=float(rng.choice(NOISE)), ragged=bool(rng.random() < 0.5)
        )
        if found is None:
            silent += 1
            continue
        for name in SUMS:
            one = getattr(found, name)
            row = (one.score, one.convicts(LEAST[name]), one.low <= 0.0 <= one.high)
            for key in (name, f"{name}, {size[0]} x {size[1]}", f"{name}, logits {sharpness[0]} to {sharpness[1]}"):
                told[key].append(row)
    for key, rows in told.items():
        z, convicted, held = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        print(
            json.dumps(
                {
                    "what": key,
                    "tables": len(rows),
                    "convicted": int(convicted.sum()),
                    "holds_0": round(float(held.mean()), 3),
                    "z_sd": round(float(z.std()), 2),
                    "z_most": round(float(np.abs(z).max()), 1),
                }
            ),
            flush=True,
        )
    print(json.dumps({"tables": tables, "without_siblings": silent}))
    return int(any(sum(row[1] for row in told[name]) > tables / 1000 for name in SUMS))


def power(rng: np.random.Generator, tables: int) -> int:
    """What is told of each deviation."""
    for size in POWER_SIZES:
        for name, sampler in DEVIATIONS.items():
            found = [_agreement(rng, size, sampler, at(), (1.0, 12.0)) for _ in range(tables)]
            known = [one for one in found if one is not None]
            print(
                json.dumps(
                    {
                        "size": f"{size[0]} x {size[1]}",
                        "deviation": name,
                        **{
                            f"z_{sum_}": round(float(np.mean([getattr(a, sum_).score for a in known])), 1)
                            for sum_ in SUMS
                        },
                        "step": round(float(np.mean([one.step.value for one in known])), 3),
                        "convicted": float(np.mean([one.step.convicts(LEAST["step"]) for one in known])),
                        "reach": round(float(np.median([one.reach for one in known])), 4),
                    }
                ),
                flush=True,
            )
    return 0


def _agreement(rng, size, sampler, report, sharpness, **how) -> Agreement | None:  # type: ignore[no-untyped-def]
    batch = tree(rng, *size, sampler=sampler, report=report, sharpness=sharpness, **how)
    draws = shared_draws(batch, batch.prompt_S)
    return None if draws is None else agreement(draws, draws.rollout_logprobs_N)


if __name__ == "__main__":
    sys.exit(main())
