"""Thousands of hostile run directories through `report`, `diagnose` and `compare`, in every format at once.

    python tests/benchmarks/hostile_run_directories.py [NUMBER] [SEED]

What is printed, and what is a failure, stands in hostile_commands.py; ends with 1 where there is one.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile_commands import audit, part
from hostile_runs import hostile_run
from laboratories import ONE_FACTOR, build_engine_cache, laboratory_in


def main() -> int:
    """0 where no command failed."""
    if sys.argv[1:2] == ["--part"]:
        part(partial(hostile_run, Path(sys.argv[4])), int(sys.argv[2]), int(sys.argv[3]))
        return 0
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        cache, home = Path(folder) / "cache", Path(folder) / "laboratory"
        home.mkdir()
        build_engine_cache(cache)
        with laboratory_in(home, cache) as laboratory:
            done = laboratory.ablate(laboratory.recipe(ONE_FACTOR))
            assert done.exit_code == 1, done.stderr
            return audit(__file__, number, first, str(done.folder))


if __name__ == "__main__":
    sys.exit(main())
