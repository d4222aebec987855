"""The run of one shard: its folder, what the others have done beside it, and what became of its cells."""

from dataclasses import dataclass, field
from pathlib import Path

from rlaudit.engines.cells.executor import Note
from rlaudit.engines.cells.shard import OfAShard, Shard
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.laboratory.place import Place
from rlaudit.laboratory.run_folder import CELL_FOLDERS


def cells_of_shards(run_dir: Path) -> list[Path]:
    """Return where the cells of a run's shards lie."""
    return sorted(run_dir.glob(f"shard-*-of-*/{CELL_FOLDERS}"))


@dataclass(frozen=True)
class ShardRun:
    """A shard of the run that is kept in `run_dir`, with what runs its cells."""

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
