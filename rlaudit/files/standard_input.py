"""`-` as a path, for every command: standard input for what is read, standard output for what is written.

What is read is kept in a file until the command ends: tables are opened more than once, and by their endings.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rlaudit.errors import UsageError

DASH = "-"
RECORD = "record"  # reads nothing itself: a `-` belongs to the command that it runs
WRITTEN = ("--write", "--tokens")  # how options that name a file to be written begin
FOLDERS = ("--run-dir",)
_PARQUET = b"PAR1"
# What a command reads, if its first bytes do not show it. A log that begins with a brace is JSON, line by line.
_ENDINGS = {"compare": ".jsonl", "curves": ".csv", "ablate": ".yaml"}


@contextmanager
def standard_input_as_file(words: Sequence[str]) -> Iterator[list[str]]:
    """Give the command line with a file in place of each `-` that is to be read. Raises UsageError for two of them."""
    if words[:1] == [RECORD]:
        yield [*words]
        return
    before = ["", *words]
    dashes = [place for place, word in enumerate(words) if word == DASH and not before[place].startswith(WRITTEN)]
    if not dashes:
        yield [*words]
        return
    place = dashes[0]
    if len(dashes) > 1:
        raise UsageError("- is standard input, and there is one of it: give the other a path")
    if before[place] in FOLDERS:
        raise UsageError(f"{before[place]} is a folder, and - is none")
    # Every inspection imports this file, and none gets here.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rlaudit-") as folder:
        yield [*words[:place], str(_kept(Path(folder), words[0], before[place])), *words[place + 1 :]]


def _kept(folder: Path, command: str, option: str) -> Path:
    if sys.stdin is None:
        raise UsageError("standard input is closed", "give a path")
    import shutil

    unnamed = folder / "standard-input"
    with unnamed.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with unnamed.open("rb") as file:
        start = file.read(4)
    ending = ".yaml" if option == "--config" else _ENDINGS.get(command, ".json")
    if start == _PARQUET:
        ending = ".parquet"
    elif ending == ".csv" and start.lstrip()[:1] == b"{":
        ending = ".jsonl"
    return unnamed.rename(folder / f"standard-input{ending}")
