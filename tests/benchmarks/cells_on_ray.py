"""What running a cell costs on a Ray cluster of three nodes, beside the same cells on this machine alone.

python tests/benchmarks/cells_on_ray.py [CELLS]

Prints wall-clock seconds a cell, three at once in both places; every cell is a real worker under real guardians whose
script does nothing. The nodes are processes of this machine, which share its cores.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from ray_clusters import cluster_of  # noqa: E402

from rlaudit.engines.cells.at_once import AtOnce  # noqa: E402
from rlaudit.engines.cells.cell import Cell  # noqa: E402
from rlaudit.engines.cells.executor import Executor  # noqa: E402
from rlaudit.engines.cells.on_ray import Cluster  # noqa: E402
from rlaudit.engines.hardware.shares import Share  # noqa: E402

SCRIPT = """
def run(job, channel):
    return {"number": job["number"]}
"""


def seconds_a_cell(folder: Path, executor: Executor, cells: int) -> float:
    """Of `cells` that do nothing."""
    script = folder / "script.py"
    script.write_text(SCRIPT)
    jobs = [{"script": str(script), "number": number} for number in range(-3, cells)]
    warm, asked = [[Cell(job, (sys.executable,), {}, 60.0, {}) for job in some] for some in (jobs[:3], jobs[3:])]
    with executor:
        # The first ones start Ray's workers, which then stay.
        for submitted in [executor.submit(cell, "warm") for cell in warm]:
            submitted.result()
        started = time.monotonic()
        under_way = [executor.submit(cell, f"cell {number}") for number, cell in enumerate(asked)]
        assert [one.result().result["number"] for one in under_way] == list(range(cells))
        return (time.monotonic() - started) / cells


if __name__ == "__main__":
    count = int(sys.argv[1]) if sys.argv[1:] else 30
    cores = tuple(sorted(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as folder, cluster_of(3) as ray:
        here, there = Path(folder) / "here", Path(folder) / "there"
        here.mkdir(), there.mkdir()
        local = seconds_a_cell(here, AtOnce(here / "cells", [Share(cores=cores)] * 3, 3), count)
        cluster = Cluster.connect(ray.address, cpu=True)
        far = seconds_a_cell(there, cluster.executor(there / "cells", print), count)
    print(f"{count} cells, three at once: {1000 * local:.0f} ms a cell here, {1000 * far:.0f} ms on Ray")
