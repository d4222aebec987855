"""Recordings of the nodes of one training, put together where the nodes had no folder in common.

Each file belongs to one process, named in its file name and first line, so that files are copied unchanged. Clocks stay
those of their hosts (`weight_updates.py`).
"""

import filecmp
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.files.read_regular import open_regular
from rlaudit.recording.recorded_lines import SCHEMA_NAME, SCHEMA_VERSION, first_line, is_first_line
from rlaudit.recording.recording import ENDING, is_recording


def merge(recordings: Sequence[Path], into: Path) -> list[str]:
    """Copy the files of recordings into a new folder, readable by its owner alone; return the sentences to
    print afterwards.

    Raises UsageError for what is no recording, for a folder that holds one, and for two files of one name that differ;
    NotFinished, and leaves no file behind, if one cannot be read or written.
    """
    for path in recordings:
        if not is_recording(path):
            raise UsageError(f"{path} holds no recording", "name folders that `rlaudit record` has written")
    if is_recording(into):
        raise UsageError(f"{into} holds a recording", "name another folder, or move it away")
    chosen: dict[str, Path] = {}
    repeated, notes, read_here = 0, [], f"{SCHEMA_NAME}/{SCHEMA_VERSION}"
    for file in _files(recordings):
        schema = _schema(file)
        if schema is None:
            notes.append(f"left out: {file} is no file of a recording")
        elif file.name not in chosen:
            chosen[file.name] = file
            if schema != read_here:
                notes.append(f"{file} is of {schema}, and {read_here} is read here")
        elif _same(chosen[file.name], file):
            repeated += 1
        else:
            raise UsageError(
                f"{chosen[file.name]} and {file} have one name and differ",
                "keep the longer one, if one is an older copy of the other",
            )
    _copy(chosen, into)
    return [*([f"files that were in several recordings and are here once: {repeated}"] if repeated else []), *notes]


def _files(recordings: Sequence[Path]) -> Iterator[Path]:
    for path in recordings:
        yield from sorted(path.glob(ENDING)) if path.is_dir() else [path]


def _schema(file: Path) -> str | None:
    """Return the schema of a recording's file; None for another file. Raises NotFinished if it cannot be read."""
    try:
        line = first_line(file)
    except ValueError:
        return None
    except OSError as error:
        raise NotFinished(f"{file} cannot be read: {error}", "may you read it?") from error
    return str(parse_json(line)["schema"]) if is_first_line(line) else None


def _same(one: Path, other: Path) -> bool:
    try:
        return filecmp.cmp(one, other, shallow=False)
    except OSError as error:
        raise NotFinished(f"{other} cannot be read: {error}", "may you read it?") from error


def _copy(files: dict[str, Path], into: Path) -> None:
    copied: list[Path] = []
    try:
        into.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, file in files.items():
            target = into / name
            with (
                open_regular(file) as source,
                os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as copy,
            ):
                copied.append(target)
                shutil.copyfileobj(source, copy)
    except (OSError, ValueError) as error:
        for target in copied:
            target.unlink(missing_ok=True)
        raise NotFinished(
            f"the recordings are not merged: {error}", "is there room, and may you write there?"
        ) from error
