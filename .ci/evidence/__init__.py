"""What the statistics of rlaudit stand on: trials with known answers, and benchmarks.

Worlds, planted faults and honest tables are those of tests/, which are read from there.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"
sys.path += [str(TESTS), str(TESTS / "curves")]
