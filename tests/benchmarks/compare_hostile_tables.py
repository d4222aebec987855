"""Thousands of broken token tables and dumps through `rlaudit compare`.

    python tests/benchmarks/compare_hostile_tables.py [NUMBER] [SEED]

What is printed, and what is a failure, stands in hostile_commands.py; ends with 1 where there is one.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile_commands import audit, part
from hostile_tables import hostile_command


def main() -> int:
    """0 where no command failed."""
    if sys.argv[1:2] == ["--part"]:
        part(hostile_command, int(sys.argv[2]), int(sys.argv[3]))
        return 0
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    return audit(__file__, number, first)


if __name__ == "__main__":
    sys.exit(main())
