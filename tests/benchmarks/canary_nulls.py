"""How often honest trainings of one arm separate from each other: a canary's false alarms on its own curves.

    rlaudit ablate tests/benchmarks/canary_nulls.yaml --run-dir RUN
    python tests/benchmarks/canary_nulls.py RUN [--pairs 10] [--seeds 3] [--alpha 0.05]

RUN is the directory of a finished canary with at least twice as many seeds an arm as a side of a pair has. Each arm's
seeds are dealt out anew for every pair, so pairs share trainings; both sides are of one arm. Prints for every pair what
separated and when, and ends with 1 where more pairs separate than alpha makes likely (one in twenty of such runs).
"""

import argparse
import json
import sys
from math import comb
from pathlib import Path

import numpy as np

from rlaudit.curves.comparison import Outcome, compare
from rlaudit.curves.curve import Run
from rlaudit.laboratory.studies.canary.judge import JUDGED, above_rounding
from rlaudit.laboratory.studies.canary.run import read_curves

# How unlikely the number of separations has to be before the run fails.
UNLIKELY = 0.05


def main() -> int:
    """0 where no more pairs separate than may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--alpha", type=float, default=0.05)
    asked = parser.parse_args()
    generator = np.random.default_rng(0)
    separated = pairs = 0
    for arm, runs in trainings_of(asked.run).items():
        if len(runs) < 2 * asked.seeds:
            print(f"{arm}: {len(runs)} trainings are too few for pairs of {asked.seeds} and {asked.seeds}")
            continue
        for _ in range(asked.pairs):
            dealt = generator.permutation(len(runs))[: 2 * asked.seeds].tolist()
            sides = [[runs[place] for place in part] for part in (dealt[: asked.seeds], dealt[asked.seeds :])]
            results = compare(*sides, list(JUDGED), asked.alpha, 0).results
            found = {one.name: one.detected for one in results if one.outcome is Outcome.SEPARATED}
            print(f"{arm}: {sorted(dealt[: asked.seeds])} against {sorted(dealt[asked.seeds :])}: {found or 'nothing'}")
            separated, pairs = separated + bool(found), pairs + 1
    print(f"{separated} of {pairs} pairs separate at alpha {asked.alpha:g}")
    return int(not pairs or chance(pairs, separated, asked.alpha) < UNLIKELY)


def trainings_of(run: Path) -> dict[str, list[Run]]:
    """The curves of every finished training by arm, as its report lists them."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    return {
        arm["name"]: [above_rounding(read_curves(run / log)) for log in arm["logs"]] for arm in report["canary"]["arms"]
    }


def chance(pairs: int, separated: int, alpha: float) -> float:
    """The probability of at least so many of independent pairs."""
    return sum(comb(pairs, k) * alpha**k * (1 - alpha) ** (pairs - k) for k in range(separated, pairs + 1))


if __name__ == "__main__":
    sys.exit(main())
