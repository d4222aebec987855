"""A recording as it was written: a folder of files of JSON lines, one for each process of a training, or one of them.

Tokens are not held: `token_records` streams those of a process. Which weights a token was sampled from stands in
`weight_updates.py`. Standard library only: `inspect` reads recordings, too.
"""

from dataclasses import dataclass
from pathlib import Path

from rlaudit.errors import NotFinished
from rlaudit.files.remote_log import is_remote
from rlaudit.recording.recorded_lines import Damage, first_line, is_first_line
from rlaudit.recording.recorded_process import Process, read_process
from rlaudit.recording.shipped.rlaudit_recorder import PARTS

ENDING = "*.jsonl"
REDACTED = (
    "redacted: token ids, text, names and paths are hashes or left out; it cannot be scored, replayed or joined with "
    "a table"
)


@dataclass(frozen=True)
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
    """Read a recording, except its tokens.

    Raises NotFinished for what is no recording, or one of another version, or has no process that can be read.
    """
    damage = Damage(str(path))
    processes: list[Process] = []
    for file in _files(path):
        process = read_process(file, damage)
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
    missing += [f"not recorded here: {part} (no method that is known for it was loaded)" for part in absent]
    clocks = len({process.clock for process in processes})
    if clocks > 1:
        missing.append(
            f"the clocks of {clocks} hosts are in no order: what happened first, on one or another, is unknown"
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


def _begins_recording(file: Path) -> bool:
    try:
        return is_first_line(first_line(file))
    except (OSError, ValueError):
        return False
