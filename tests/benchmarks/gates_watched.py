"""Gates of `rlaudit curves` on curves that stay well and on curves that turn: false alarms, and steps until it is said.

    python tests/benchmarks/gates_watched.py [--curves 200] [--alpha 0.05] [--seed 0]

Curves of the kinds of noise of `tests/curves/synthetic_runs.py`, 400 steps, looked at after every step. The limit lies
some standard deviations of a step above their mean. What turns is shifted to as far above the limit from step 100 on.
Printed for each noise and distance: the share of clean curves with an alarm anywhere, of shifted ones with an alarm
after the shift, and the median number of steps until it. A curve with a memory wanders beyond a limit that is close for
as long as an alarm takes, and is told: that is what a gate is for, and no false alarm. Ends with 1 where surely more
than alpha of the curves raise one whose limit is two standard deviations away, or which has no memory and no skew.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "curves"), str(Path(__file__).resolve().parents[2])]

from synthetic_runs import Noise, changed, seeds  # noqa: E402

from rlaudit.curves.gate import Gate, Watched  # noqa: E402

NOISES = [Noise("white"), Noise("ar0.5"), Noise("ar0.9"), Noise("heavy tails"), Noise("spikes"),
          Noise("white", "bounded", 1.0), Noise("white", "random walk", 1.0)]  # fmt: skip
DISTANCES = (0.0, 0.5, 1.0, 2.0)
FORGETFUL = ("white", "heavy tails")
STEPS, TURN = 400, 100


def alarm(curve: np.ndarray, limit: float, alpha: float) -> int | None:
    """The step of the alarm."""
    watched = Watched(Gate("metric", True, limit), "metric", alpha)
    return next((step for step, value in enumerate(curve.tolist()) if watched.see(step, value)), None)


def main() -> int:
    """1 where clean curves are alarmed too often."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--curves", type=int, default=200)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    # Binomial, three standard errors.
    most = given.alpha + 3 * (given.alpha * (1 - given.alpha) / given.curves) ** 0.5
    wrong = 0
    for noise in NOISES:
        curves = seeds(noise, "flat", STEPS, given.curves, rng)
        for distance in DISTANCES:
            false = [alarm(curve, distance, given.alpha) for curve in curves]
            found = [alarm(changed(curve, TURN, 2 * distance or 1.0), distance, given.alpha) for curve in curves]
            later = [one - TURN for one in found if one is not None and one >= TURN]
            share = sum(one is not None for one in false) / len(false)
            wrong += share > most and (distance == max(DISTANCES) or str(noise) in FORGETFUL)
            print(
                json.dumps(
                    {
                        "noise": str(noise),
                        "limit": distance,
                        "false_alarms": share,
                        "told": len(later) / len(found),
                        "median_delay": float(np.median(later)) if later else None,
                    }
                )
            )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
