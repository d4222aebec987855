"""The run of one shard: its folder, the cells of the other shards, and what became of its cells."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rlaudit.engines.cells.executor import Note
from rlaudit.engines.cells.shard import OfAShard, Shard
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.laboratory.place import Place
from rlaudit.laboratory.run_folder import CELL_FOLDERS


def cells_of_shards(run_dir: Path) -> list[Path]:
    """Return the folders with the cells of a run's shards."""
    return sorted(run_dir.glob(f"shard-*-of-*/{CELL_FOLDERS}"))


@dataclass(frozen=True)
class ShardRun:
    """A shard of the run in `run_dir`, with the executors of its cells."""

    shard: Shard
    run_dir: Path
    executors: list[OfAShard] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """The run directory of this shard."""
        return self.run_dir / self.shard.folder

    @property
    def others(self) -> list[Path]:
        """The folders with the cells of the other shards and of a merged run."""
        own_cells = self.folder / CELL_FOLDERS
        return [self.run_dir / CELL_FOLDERS, *(cells for cells in cells_of_shards(self.run_dir) if cells != own_cells)]

    def at(self, place: Place) -> Place:
        """Return the same place, for this shard's cells only."""

        @contextmanager
        def of_the_shard(folder: Path, accelerator: Accelerator, note: Note) -> Iterator[OfAShard]:
            with place(folder, accelerator, note) as inner:
                self.executors.append(OfAShard(self.shard, inner, folder, self.others))
                yield self.executors[-1]

        return of_the_shard

    def summary(self) -> str:
        """Return what was done, and what is next."""
        left = [title for executor in self.executors for title in executor.left]
        failed = [title for executor in self.executors for title in executor.failed]
        words = f"shard {self.shard} done in {self.folder}; cells left to the others: {len(left)}"
        if failed:
            return f"{words}; failed: {'; '.join(failed)}"
        return f"{words}; when all are done, the same command without --shard goes on from what they left"

    @property
    def exit_code(self) -> int:
        """3 if one of this shard's cells failed, else 0."""
        return 3 if any(executor.failed for executor in self.executors) else 0
