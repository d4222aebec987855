"""The options for where the cells of a run are run, and how many at once."""

from typing import TYPE_CHECKING

from rlaudit.cli.options import ray_address
from rlaudit.errors import UsageError
from rlaudit.laboratory.place import Place
from rlaudit.text.progress import Progress

if TYPE_CHECKING:
    from rlaudit.engines.cells.on_ray import Cluster

JOBS_HELP = (
    "How many engines run at the same time: a number, or auto, which is one per GPU and one on a CPU. "
    "On a CPU each has its own cores."
)
AUTO = "auto"
EXECUTOR_HELP = "Where engines run: local, or ray[:ADDRESS], a Ray cluster whose nodes all see the run directory."


def jobs_of(option: str) -> int | None:
    """Return how many cells run at once, None for `auto`. Raises UsageError for anything else."""
    if option == AUTO:
        return None
    if not option.isdigit() or int(option) < 1:
        raise UsageError(f"--jobs {option}: neither a number of cells nor {AUTO}", "Write --jobs 4, or --jobs auto.")
    return int(option)


def on_cluster(executor: str, at_once: int | None, progress: Progress, *, cpu: bool) -> "Cluster | None":
    """Connect to the Ray cluster that `executor` names; return None for this machine.

    Raises UsageError for options that exclude each other, and what Cluster.connect raises.
    """
    address = ray_address(executor)
    if address is None:
        return None
    if at_once is not None:
        raise UsageError("--executor ray takes no --jobs: Ray gives cells what is free")
    from rlaudit.engines.cells.on_ray import Cluster

    with progress.step("looking at the nodes of the Ray cluster"):
        cluster = Cluster.connect(address, cpu=cpu)
    for sentence in cluster.left_out:
        progress.note(f"  {sentence}")
    progress.note(f"  cells run on {len(cluster.nodes)} nodes: {', '.join(node.name for node in cluster.nodes)}")
    return cluster


def at_cluster(cluster: "Cluster") -> Place:
    """Return the cluster as a place for cells."""
    return lambda folder, accelerator, note: cluster.executor(folder, note)
