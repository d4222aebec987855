"""A recording: a folder of files of JSON lines, one for each process of a training, or one of them.

Each file is read once, into columns (`recorded_process.py`). Four questions are asked of these: which engines there
were and how their requests were sampled (`engines`), from which weights (`served`), what was read of the weights
(`RecordedEngine.weight_readings`), and which sequences can be compared (`tokens/recorded`).
Standard library only: `inspect` reads recordings, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from rlaudit.errors import NotFinished
from rlaudit.files.remote_log import is_remote
from rlaudit.recording.column import Columns
from rlaudit.recording.recorded_engine import RecordedEngine, recorded_engines
from rlaudit.recording.recorded_lines import Damage, first_line, is_first_line
from rlaudit.recording.recorded_process import Process, read_process
from rlaudit.recording.shipped.rlaudit_recorder import PARTS
from rlaudit.recording.weight_updates import ServedEngine, served_engines

ENDING = "*.jsonl"
REDACTED = (
    "redacted: token ids, text, names and paths are hashes or left out; it cannot be scored, replayed or joined with "
    "a table"
)


@dataclass(frozen=True, eq=False)
class Recording:
    """The processes of a training, in the order in which they began."""

    path: Path
    processes: tuple[Process, ...]
    # Parts that are not recorded because no process had a method for them.
    absent: tuple[str, ...]
    # What is not recorded, of all processes and of the folder, in sentences.
    missing: tuple[str, ...]
    # The sentences on lines and files that cannot be used, each with the number of these.
    damaged: tuple[tuple[str, int], ...]

    @cached_property
    def served(self) -> tuple[ServedEngine, ...]:
        """The engines that had requests, with the updates of their weights."""
        return served_engines(self.processes)

    @cached_property
    def engines(self) -> tuple[RecordedEngine, ...]:
        """The engines in the order in which they were built; those that were built alike are one."""
        return recorded_engines(self.processes, self.served)


def is_recording(path: Path) -> bool:
    """Return whether a path is a recording, of any version: a folder with a file of one, or such a file."""
    if is_remote(path):
        return False
    try:
        files = sorted(path.glob(ENDING)) if path.is_dir() else [path]
    except OSError:
        return False
    return any(_begins_recording(file) for file in files)


def open_recording(path: Path) -> Recording:
    """Read a recording, once for all who ask while its files stay as they are.

    Raises NotFinished for what is no recording, or one of another version, or has no process that can be read.
    """
    files = _files(path)
    return _opened(path, tuple(files), tuple(map(_version, files)))


# One, and what it is held against.
@lru_cache(maxsize=2)
def _opened(path: Path, files: Sequence[Path], versions: Sequence[tuple[int, int]]) -> Recording:
    damage, columns = Damage(str(path)), Columns()
    processes: list[Process] = []
    for file in files:
        process = read_process(file, columns, damage)
        if process is not None:
            processes.append(process)
    if not processes:
        raise NotFinished(
            "; ".join(damage.sentences()) or f"{path} holds no recording",
            "give the folder that `rlaudit record --into DIR` or RLAUDIT_RECORD=DIR named, or a file of it",
        )
    # For a reader's eye alone: the times of day of several hosts prove no order.
    processes.sort(key=lambda process: (process.at if process.wall is None else process.wall, str(process.file)))
    hooked = {target for process in processes for target in process.hooked}
    absent = tuple(part for part, targets in PARTS.items() if hooked.isdisjoint(targets))
    missing = [*damage.sentences(), *(sentence for process in processes for sentence in process.missing)]
    missing += [
        f"rlaudit could not record {part}, since this run loaded none of vLLM's functions for {part}" for part in absent
    ]
    clocks = len({process.clock for process in processes})
    if clocks > 1:
        missing.append(
            f"the clocks of {clocks} hosts cannot be compared, so it is unknown on which host something happened first"
        )
    if any(process.redacted for process in processes):
        missing.append(REDACTED)
    damaged = (*damage.counted(), *(entry for process in processes for entry in process.damaged))
    return Recording(path, tuple(processes), absent, tuple(missing), damaged)


def _files(path: Path) -> list[Path]:
    try:
        return sorted(path.glob(ENDING)) if path.is_dir() else [path]
    except OSError as error:
        raise NotFinished(f"{path} cannot be read: {error}", "may you read it?") from error


def _version(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _begins_recording(file: Path) -> bool:
    try:
        return is_first_line(first_line(file))
    except (OSError, ValueError):
        return False
