"""The place where a run's cells run, and how many run there at once."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rlaudit.engines.cells.at_once import AtOnce
from rlaudit.engines.cells.executor import Executor, Note, OneAtATime
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.hardware.nvidia_driver import MIB
from rlaudit.engines.hardware.shares import Share
from rlaudit.engines.models.model_files import read_model_files
from rlaudit.errors import NotFinished
from rlaudit.laboratory.fit import host_bytes
from rlaudit.laboratory.scoring import GIB
from rlaudit.laboratory.study import Plan

# From the folder of the cells, the accelerator of each, and what shows sentences to the user. Leaving the context ends
# all cells that still run.
Place = Callable[[Path, Accelerator, Note], AbstractContextManager[Executor]]


def one_at_a_time(folder: Path, accelerator: Accelerator, note: Note) -> AbstractContextManager[Executor]:
    """Run one cell at a time, with all of this machine, and only while its outcome is taken."""
    return nullcontext(OneAtATime(folder, GpuMemory(accelerator.devices), note))


def cells_at_once(plan: Plan, accelerator: Accelerator, shares: Sequence[Share], requested: int | None) -> int:
    """Return how many cells run at once: at most one for each share of the machine, and as many as its memory holds.

    Raises NotFinished if the host's memory cannot hold as many as were requested.
    """
    if len(shares) < 2 or requested == 1:
        return 1
    files = read_model_files(plan.recipe.model, plan.recipe.revision)
    each = host_bytes(plan, accelerator, files)
    hold = max(1, accelerator.memory_mib * MIB // each)
    if requested is not None and requested > hold:
        raise NotFinished(
            f"{requested} cells at once may need {requested * each / GIB:.0f} GiB of memory, and this machine has "
            f"{accelerator.memory_mib / 1024:.0f} GiB",
            f"Give at most --jobs {hold}.",
        )
    return min(requested or hold, len(shares))


def local(shares: Sequence[Share], most: int) -> Place:
    """Run so many cells at once on this machine."""

    def place(folder: Path, accelerator: Accelerator, note: Note) -> AtOnce:
        return AtOnce(folder, shares, most, note)

    return one_at_a_time if most == 1 else place
