"""The options that say where the cells of a run are run, and how many of them at once."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.cli.options import ray_address
from rlaudit.engines.cells.executor import Note
from rlaudit.engines.cells.shard import OfAShard, Shard
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.errors import UsageError
from rlaudit.laboratory.place import Place
from rlaudit.laboratory.run_folder import CELL_FOLDERS
from rlaudit.progress import Progress

if TYPE_CHECKING:
    from rlaudit.engines.cells.on_ray import Cluster

JOBS_HELP = "Cells at once: a number, or auto, which is one per GPU and one on a CPU. On a CPU each has its own cores."
AUTO = "auto"
EXECUTOR_HELP = "Where cells run: local, or ray[:ADDRESS], a Ray cluster whose nodes all see the run directory."


def jobs_of(option: str) -> int | None:
    """How many at once; None for `auto`. Raises UsageError for anything else."""
    if option == AUTO:
        return None
    if not option.isdigit() or int(option) < 1:
        raise UsageError(f"--jobs {option}: neither a number of cells nor {AUTO}", "Write --jobs 4, or --jobs auto.")
    return int(option)


def on_cluster(
    executor: str, at_once: int | None, progress: Progress, *, cpu: bool, shared_out: bool
) -> "Cluster | None":
    """The Ray cluster that `executor` names; None for this machine.

    Raises UsageError for options that exclude each other, and what Cluster.connect raises.
    """
    address = ray_address(executor)
    if address is None:
        return None
    if at_once is not None or shared_out:
        raise UsageError("--executor ray takes neither --jobs nor --shard: Ray gives cells what is free")
    from rlaudit.engines.cells.on_ray import Cluster

    with progress.step("looking at the nodes of the Ray cluster"):
        cluster = Cluster.connect(address, cpu=cpu)
    for sentence in cluster.left_out:
        progress.note(f"  {sentence}")
    progress.note(f"  cells run on {len(cluster.nodes)} nodes: {', '.join(node.name for node in cluster.nodes)}")
    return cluster


def at_cluster(cluster: "Cluster") -> Place:
    """The cluster as a place for cells."""
    return lambda folder, accelerator, note: cluster.executor(folder, note)


SHARD_HELP = "I/N: run only the I-th of N equal shares of the cells, in RUN-DIR/shard-I-of-N, and stop."
MERGE_HELP = "The arguments are run directories of one plan: report on the union of their cells, and run nothing."


def cells_of_shards(run_dir: Path) -> list[Path]:
    """Where the cells of a run's shards lie."""
    return sorted(run_dir.glob(f"shard-*-of-*/{CELL_FOLDERS}"))


@dataclass(frozen=True)
class RunOfAShard:
    """A shard's run directory, those of the others beside it, and what became of the cells."""

    shard: Shard
    run_dir: Path
    executors: list[OfAShard] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where this shard's run is kept."""
        return self.run_dir / self.shard.folder

    @property
    def others(self) -> list[Path]:
        """Where the cells of the others and of a merged run lie."""
        own = self.folder / CELL_FOLDERS
        return [self.run_dir / CELL_FOLDERS, *(cells for cells in cells_of_shards(self.run_dir) if cells != own)]

    def at(self, place: Place) -> Place:
        """The same place, for this shard's cells only."""

        def of_the_shard(folder: Path, accelerator: Accelerator, note: Note) -> OfAShard:
            self.executors.append(OfAShard(self.shard, place(folder, accelerator, note), folder, self.others))
            return self.executors[-1]

        return of_the_shard

    def said(self) -> str:
        """What was done, and what is next."""
        left = [title for one in self.executors for title in one.left]
        failed = [title for one in self.executors for title in one.failed]
        words = f"shard {self.shard} done in {self.folder}; cells left to the others: {len(left)}"
        if failed:
            return f"{words}; failed: {'; '.join(failed)}"
        return f"{words}; when all are done, the same command without --shard goes on from what they left"

    @property
    def exit_code(self) -> int:
        """0 for a shard that is done, 3 where a cell of its own failed."""
        return 3 if any(one.failed for one in self.executors) else 0
