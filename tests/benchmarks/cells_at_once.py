"""What running a cell costs beside the cell itself, with many imitated GPUs on one machine.

python tests/benchmarks/cells_at_once.py [CELLS] [GPUS]

Prints: cells and GPUs, wall-clock seconds a cell, seconds of processor a cell of this process and of what it started,
whether the answers came in order, and the peak memory of this process. Every cell is a real worker under real
guardians whose script does nothing; its key and seal are written as those of an arm are.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from rlaudit.engines.cells.at_once import AtOnce
from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.hardware import gpu_memory
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.engines.hardware.shares import Share
from rlaudit.engines.hardware.visible_gpus import VISIBLE

SCRIPT = """
def run(job, channel):
    return {"number": job["number"]}
"""


def measured(cells: int, gpus: int) -> str:
    """One line of figures."""
    devices = [Device(index, f"GPU-{index}", "imitated", 80_000, "sm90") for index in range(gpus)]
    gpu_memory.used_memory_mib = lambda devices: (0,) * len(devices)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(SCRIPT)
        shown = {VISIBLE: ",".join(str(device.index) for device in devices)}
        asked = [
            Cell(
                {"script": str(script), "number": number}, (sys.executable,), shown, 600.0, {"accelerator": {}}, gpus=1
            )
            for number in range(cells)
        ]
        started = time.monotonic()
        with AtOnce(Path(folder) / "cells", [Share(gpu=device) for device in devices], gpus) as here:
            submitted = [here.submit(cell) for cell in asked]
            numbers = [one.result().result["number"] for one in submitted]
        wall = time.monotonic() - started
    own, started_by_us = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (
        f"{cells} cells on {gpus} GPUs: {1000 * wall / cells:.0f} ms a cell; processor a cell: "
        f"{1000 * (own.ru_utime + own.ru_stime) / cells:.0f} ms here, "
        f"{1000 * (started_by_us.ru_utime + started_by_us.ru_stime) / cells:.0f} ms in what was started; "
        f"in order: {numbers == list(range(cells))}; peak memory here: {own.ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    print(measured(*(words or [1000, 16])))
