"""A place to run cells at, as a run asks for one before anything of it has started."""

from collections.abc import Callable
from pathlib import Path

from rlaudit.engines.cells.executor import Executor, Note, OneAtATime
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.gpu_memory import GpuMemory

# The folder where cells lie, the accelerator of each, and whom to tell what a person should know.
Place = Callable[[Path, Accelerator, Note], Executor]


def one_at_a_time(folder: Path, accelerator: Accelerator, note: Note) -> Executor:
    """This machine, all of it for one cell."""
    return OneAtATime(folder, GpuMemory(accelerator.devices), note)
