"""The confusion matrix of the attribution on the generator that was never used for tuning, with its targets.

    python tests/benchmarks/confusion_matrix.py [--trials 20] [--seed 0] [--jobs 2] [--generator held-out]

Prints what was measured, misses included; ends with 1 where a target is missed.
"""

import argparse
import os
import sys
import time

from rlaudit.report.formats.text import render
from rlaudit.selftest.cells import cells
from rlaudit.selftest.confusion import confusion_of
from rlaudit.selftest.document import document_of
from rlaudit.selftest.run import run_trials


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--generator", default="held-out")
    asked = parser.parse_args()
    started = time.monotonic()
    labels = cells()
    trials = run_trials(asked.generator, labels, asked.trials, asked.seed, asked.jobs)
    confusion = confusion_of(asked.generator, labels, trials)
    print(render(document_of(confusion), None), end="")
    print(f"{time.monotonic() - started:.0f} s with {asked.jobs} processes")
    return 0 if confusion.met else 1


if __name__ == "__main__":
    sys.exit(main())
