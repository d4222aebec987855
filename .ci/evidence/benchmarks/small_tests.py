"""How small a framework's test may be: what `assert_logprobs_agree` says of few tokens, and how long it takes.

    python -m evidence.benchmarks.small_tests [--trials 20]

Rows are those of `tests/small_rollouts.py`: drawn at a temperature of 0.7, with raw or processed logprobs. One warm
process; seconds by the clock. Ends with 1 if processed logprobs fail, or if the size that the docstring names does not
name raw logprobs in nine of ten trials.
"""

import argparse
import statistics
import sys
import time
from collections import Counter

from small_rollouts import TEMPERATURE, small_rollouts

from rlaudit.testing import assert_logprobs_agree

# Prompts, samples of each, tokens of each sample; the first is the docstring's.
SIZES = ((32, 4, 8), (64, 1, 16), (32, 1, 8), (2, 1, 8))
LEAST_NAMED = 0.9


def outcome(size: tuple[int, int, int], seed: int, raw: bool) -> tuple[str, float]:
    """Return what the assertion says first, and the seconds that it takes."""
    table = small_rollouts(seed, *size, raw=raw)
    began = time.perf_counter()
    try:
        assert_logprobs_agree(table, temperature=TEMPERATURE)
        said = "passes"
    except AssertionError as failure:
        said = str(failure).partition("\n")[0].partition(": ")[2].rstrip(".")
    return said, time.perf_counter() - began


def main() -> int:
    """Print a row for each size and kind of logprobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    trials = parser.parse_args().trials
    outcome(SIZES[0], trials, raw=True)
    bad = False
    for size in SIZES:
        for raw in (True, False):
            outcomes = [outcome(size, seed, raw) for seed in range(trials)]
            said = Counter(text for text, _ in outcomes)
            seconds = statistics.median(taken for _, taken in outcomes)
            shown = "; ".join(f"{count} of {trials} {text}" for text, count in said.most_common())
            print(f"{' x '.join(map(str, size)):<12} {'raw' if raw else 'processed':<10} {seconds:.2f} s  {shown}")
            named = said["raw-logprobs (semantic layer)"]
            bad |= said["passes"] < trials if not raw else size == SIZES[0] and named < LEAST_NAMED * trials
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
