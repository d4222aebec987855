"""Plants faults in rollouts of a known policy and lets `compare` judge the files: prints the confusion table.

    cd .ci && python -m evidence.known_policy [--trials 20] [--faults NAME,NAME] [--jobs 2]

Ends with 1 if a target is missed.
"""

import argparse
import os
import sys

from evidence.known_policy.confusion import document_of
from evidence.known_policy.trials import rows, run_trials
from evidence.selftest.matrix import printed
from rlaudit.text.progress import Progress


def main(words: list[str] | None = None) -> int:
    """Run the trials, print the table, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m evidence.known_policy", description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20, help="blind logs for each fault and dose")
    parser.add_argument("--faults", default="", help="comma-separated; default: all, and honest rollouts")
    parser.add_argument("--seed", type=int, default=0, help="other seeds give other policies and other tokens")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args(words)
    wanted = rows([name for name in options.faults.split(",") if name])
    progress = Progress()
    with progress.step(f"{options.trials * len(wanted)} blind logs"):
        found = run_trials(
            wanted,
            options.trials,
            options.seed,
            options.jobs,
            lambda done, total: progress.update(f"{done} of {total} rounds done"),
        )
    matrix = document_of(found)
    print(printed(matrix), end="")
    return 0 if matrix.met else 1


if __name__ == "__main__":
    sys.exit(main())
