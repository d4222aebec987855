"""How often gates of a training alarm without a change, and with one: rlaudit's learned ones, SkyRL's and NeMo-RL's.

    python -m evidence.benchmarks.learned_gates [--histories 400] [--seed 0]

A history is some runs of one stack with known noise (tests/curves/histories.py); a new run is judged by each rule, once
without a change and with 1.1, 1.5 and 3 times the mismatch.
- learned: `rlaudit curves NEW --gates-from RUNS` at a stated rate of 0.05;
- SkyRL: the last step is at most 5 % above the highest last step of the runs (its scripts: "5% allowance from min/max
  of last 10 CI runs");
- NeMo-RL: the median of all steps is at most 1.1 times the level. Its 1.1 is of a ratio that is 1 at parity, and is
  written for every recipe alike; here it is taken as 10 % above the median of the runs.
Ends with 1 if the learned gates alarm more often than stated beyond what the number of histories explains.
"""

import argparse
import sys

import numpy as np
from histories import HISTORIES, History, run_of
from synthetic_runs import Noise

from rlaudit.curves.learned_gates import Verdict, judge, learn

ALPHA = 0.05
FACTORS = (1.0, 1.1, 1.5, 3.0)
RUNS = (2, 3, 5, 10)
SKYRL, NEMO_RL = 1.05, 1.1
# Standard errors of a share that chance explains.
CHANCE = 3.0


def alarms(values_RN):
    """Whether each rule alarms at each factor: {rule: [bool]}, the last run being the new one."""
    *runs, new = values_RN
    gates = learn([run_of(row, str(place)) for place, row in enumerate(runs)], [], ALPHA)
    last = max(row[-1] for row in runs)
    middle = np.median([np.median(row) for row in runs])
    return {
        "learned": [
            any(held.verdict is Verdict.OUTSIDE for held in judge(gates, run_of(factor * new))) for factor in FACTORS
        ],
        "SkyRL": [factor * new[-1] > SKYRL * last for factor in FACTORS],
        "NeMo-RL": [factor * np.median(new) > NEMO_RL * middle for factor in FACTORS],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    worst = 0.0
    print(f"{'history':44} {'runs':>4} {'rule':8} {'no change':>9} {'1.1':>6} {'1.5':>6} {'3':>6}")
    for history in (*HISTORIES, History(Noise("white"), between=0.15)):
        for count in RUNS:
            generator = np.random.default_rng([chosen.seed, count])
            found = [alarms(history.values(count + 1, generator)) for _ in range(chosen.histories)]
            for rule in found[0]:
                shares = np.mean([one[rule] for one in found], axis=0)
                print(
                    f"{history!s:44} {count:4} {rule:8} {shares[0]:9.3f} " + " ".join(f"{s:6.2f}" for s in shares[1:])
                )
                worst = max(worst, shares[0] if rule == "learned" else 0.0)
    most = ALPHA + CHANCE * (ALPHA * (1 - ALPHA) / chosen.histories) ** 0.5
    print(f"the most false alarms of learned gates: {worst:.3f}, stated {ALPHA}, {most:.3f} with chance")
    return int(worst > most)


if __name__ == "__main__":
    sys.exit(main())
