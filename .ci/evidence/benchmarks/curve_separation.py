"""False alarms and detection delay of `rlaudit curves` on synthetic runs with a known change.

Run with `python -m evidence.benchmarks.curve_separation [TRIALS] [LENGTH]`. Every row is one kind of noise and one
number of reference seeds; changes are in standard deviations of the step noise and begin at a third of the run. A
detection before the change is a false alarm and no detection.
"""

import sys

import numpy as np
from synthetic_runs import TRENDS, Noise, changed, seeds

from rlaudit.curves.separation import separate

ALPHA = 0.05
SIZES = (1.0, 2.0, 4.0, 8.0)
NOISES = (
    Noise("white"),
    Noise("ar0.5"),
    Noise("ar0.9"),
    Noise("heavy tails"),
    Noise("spikes"),
    Noise("growing"),
    Noise("white", "bounded", 0.5),
    Noise("white", "bounded", 1.0),
    Noise("white", "random walk", 1.0),
    Noise("white", "random walk", 2.0),
    Noise("ar0.5", "random walk", 1.0),
)


def main() -> None:
    """Print the table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    length = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    print(f"{trials} pairs without and {trials // 4} with each change, {length} steps, alpha {ALPHA}")
    changes = "".join(f"{f'+{size:g} sd: found, median delay':>32}" for size in SIZES)
    print(f"{'noise':<38}{'seeds':>6}{'false alarms':>14}{changes}")
    for references in (1, 3):
        for noise in NOISES:
            alarms = np.mean([found(noise, references, length, trial, 0.0) is not None for trial in range(trials)])
            cells = "".join(f"{_cell(noise, references, length, trials // 4, size):>32}" for size in SIZES)
            print(f"{noise!s:<38}{references:>6}{alarms:>13.1%} {cells}", flush=True)


def found(noise: Noise, references: int, length: int, trial: int, size: float) -> int | None:
    """The step at which one pair of runs separates."""
    generator = np.random.default_rng([trial, references, int(size * 10), *str(noise).encode()])
    trend = list(TRENDS)[trial % len(TRENDS)]
    runs = seeds(noise, trend, length, references + 1, generator)
    return separate(runs[:-1], changed(runs[-1], length // 3, size), ALPHA, True, generator).detected


def _cell(noise: Noise, references: int, length: int, trials: int, size: float) -> str:
    at = [found(noise, references, length, trial, size) for trial in range(trials)]
    delays = [step - length // 3 + 1 for step in at if step is not None and step >= length // 3]
    early = sum(step is not None and step < length // 3 for step in at)
    median = f"{np.median(delays):.0f} steps" if delays else "-"
    return f"{len(delays) / trials:.0%}, {median}" + (f" ({early} early)" if early else "")


if __name__ == "__main__":
    main()
