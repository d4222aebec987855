"""Any path a user may give, as a token table: a file, a run directory, or a directory of a framework's dumps."""

import re
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.discover import discover
from rlaudit.errors import NotFinished, UsageError
from rlaudit.files.remote_log import exists, files_below, is_file, is_remote, size_of
from rlaudit.text.counted import counted
from rlaudit.text.did_you_mean import nearest
from rlaudit.tokens import exports as exports_package
from rlaudit.tokens.export import WHOLE, Export, Part
from rlaudit.tokens.exports.csv_table import columns as csv_columns
from rlaudit.tokens.fault import Faults
from rlaudit.tokens.json_lines import (
    BROKEN,
    beginning,
    first_record,
    forget_first_values,
    is_json_lines,
    json_lines,
)
from rlaudit.tokens.logged_sequence import PLURALS
from rlaudit.tokens.parquet import DAMAGED, MAGIC, MEASURED, REQUIRED, columns_of
from rlaudit.tokens.prompt_numbers import PromptNumbers
from rlaudit.tokens.renamed_columns import AS_OURS, IDENTITY, RenamedColumns, guessed_columns
from rlaudit.tokens.token_batch import TokenBatch

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".ndjson", ".parquet", ".csv", ".tsv")
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.zst")
PICKLES = (".pkl", ".pickle", ".pt", ".pth")
SPECIAL_FILES = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# The kernel makes these files while they are read: some never end, some wait for ever.
KERNEL_FILES = ("/proc", "/sys", "/dev")
MOST_FILES = 20_000
TRIED = 4
SHOWN = 8


def all_exports() -> dict[str, Export]:
    """Return every format that a file of `rlaudit/tokens/exports` offers, by name."""
    return discover(exports_package, "EXPORT", Export)


@dataclass(frozen=True)
class TokenTable:
    """Files of one format that hold one comparison."""

    path: Path
    export: Export
    files: tuple[Path, ...]
    part: Part = WHOLE

    def batches(
        self, faults: Faults, prompts: PromptNumbers, columns: Collection[str] = MEASURED
    ) -> Iterator[TokenBatch]:
        """Yield the sequences of all files, in order."""
        for file in self.files:
            yield from self.export.read(file, faults, prompts, columns, self.part)

    def sample(self, tokens: int, prompts: PromptNumbers) -> Iterator[TokenBatch] | None:
        """Return about `tokens` tokens spread over the files, with all columns; None if only the stream has them."""
        if self.export.sample is None:
            return None
        return self._sample(tokens, prompts)

    def _sample(self, tokens: int, prompts: PromptNumbers) -> Iterator[TokenBatch]:
        assert self.export.sample is not None
        step = max(1, len(self.files) // 8)
        chosen = self.files[::step]
        for file in chosen:
            yield from self.export.sample(file, max(1, tokens // len(chosen)), prompts, self.part)


def open_tables(path: Path, of_trainer: bool = False, renamed: RenamedColumns = AS_OURS) -> tuple[TokenTable, ...]:
    """Return the comparisons that a path holds: one, or one per arm of a run.

    of_trainer: the path was given for the trainer's side, and need not have rollout logprobs.
    renamed: columns with other names than ours; a path with any of them is read as a token table.
    Raises UsageError for a path that does not exist, a special file, a pickle, an unknown format, a directory of
    several formats, or a missing column; NotFinished for a file that cannot be read or is damaged at its beginning.
    """
    check_readable(path)
    try:
        return _renamed(path, of_trainer, renamed) if renamed else _opened(path, of_trainer)
    except (*BROKEN, *DAMAGED) as error:
        raise NotFinished(f"{path} cannot be read: {error}", "is it whole, and may you read it?") from error
    finally:
        forget_first_values()


def _renamed(path: Path, of_trainer: bool, renamed: RenamedColumns) -> tuple[TokenTable, ...]:
    """Return a token table of one file, or of files alike, whose columns have other names."""
    files = (path,) if path.is_file() else tuple(sorted(_files(path), key=_natural))
    files = tuple(file for file in files if file.name.endswith(ENDINGS))
    kinds = {_kind_of_table(file) for file in files}
    if len(kinds) != 1:
        what = "files of several kinds" if files else "no Parquet, CSV or JSON lines"
        raise UsageError(f"{path} holds {what}: --columns is for one table", "give the file itself")
    part = renamed_part(_names(files[0]), files[0], of_trainer, renamed)
    return (TokenTable(path, all_exports()[kinds.pop()], files, part),)


def renamed_part(names: Sequence[str], path: Path, of_trainer: bool, renamed: RenamedColumns) -> Part:
    """Return the part of a table with these columns, each under the name that was given for it or that its own tells.

    path: what messages call the table. Raises UsageError if a column is missing.
    """
    given = renamed.of(names)
    guessed = guessed_columns(names, given)
    # People name a list in the plural.
    listed = {ours: theirs for theirs, ours in PLURALS.items() if theirs in names and ours not in names}
    listed = {ours: theirs for ours, theirs in listed.items() if theirs not in given.theirs.values()}
    renamed = RenamedColumns({**listed, **guessed.theirs, **given.theirs})
    columns = set(renamed.ours(names))
    required = (*IDENTITY, "trainer_logprob" if of_trainer else "rollout_logprob")
    missing = [name for name in required if name not in columns]
    if missing:
        raise UsageError(
            f"{path}: nothing there is {' and nothing '.join(missing)}",
            f"name it with --columns THEIRS={missing[0]}; there are: {', '.join(names)}",
        )
    taken = ", ".join(f"{theirs} as {our}" for our, theirs in guessed.theirs.items())
    notes = (f"columns taken by their names: {taken}; --columns THEIRS=OURS takes others",) if taken else ()
    return Part(renamed=renamed, notes=notes)


def _kind_of_table(file: Path) -> str:
    """Return the name of the export that reads a token table of this kind, also with other names of columns."""
    if columns_of(file) is not None:
        return "token-table"
    return "token-table-csv" if csv_columns(file) else "token-table-jsonl"


def _opened(path: Path, of_trainer: bool) -> tuple[TokenTable, ...]:
    folder = next((export for export in all_exports().values() if export.is_folder and export.recognise(path)), None)
    if folder is not None:
        return tuple(TokenTable(path, folder, (path,), part) for part in folder.parts(path))
    if path.is_file():
        export = _export_of(path, of_trainer)
        if export is None:
            names = _names(path) if path.name.endswith(ENDINGS) else ()
            if names and not _missing(guessed_columns(names).ours(names), of_trainer):
                return _renamed(path, of_trainer, AS_OURS)
            _check_beginning(path)
            raise _unknown(path, of_trainer)
        return tuple(TokenTable(path, export, (path,), part) for part in export.parts(path))
    tokens_file = path / "tokens.parquet"
    if is_file(tokens_file):
        tables = _opened(tokens_file, of_trainer)
        return tuple(TokenTable(path, table.export, table.files, table.part) for table in tables)
    return (_directory(path, of_trainer),)


def _directory(path: Path, of_trainer: bool) -> TokenTable:
    by_export: dict[str, list[Path]] = {}
    exports = all_exports()
    for alike in _alike(path):
        tried = (_export_of(file, of_trainer) for file in alike[:TRIED])
        export = next((candidate for candidate in tried if candidate is not None), None)
        if export is not None:
            by_export.setdefault(export.name, []).extend(alike)
    if not by_export:
        raise _unknown(path, of_trainer)
    if len(by_export) > 1:
        formats = ", ".join(
            f"{exports[name].title} ({counted(len(files), 'file')})" for name, files in by_export.items()
        )
        raise UsageError(f"{path} holds several formats: {formats}", "give the file or folder of one of them")
    ((name, files),) = by_export.items()
    files = [file for file in files if not exports[name].aside(file)] or files
    return TokenTable(path, exports[name], tuple(sorted(files, key=_natural)))


def _alike(path: Path) -> list[list[Path]]:
    """Return files whose names differ in numbers only, together: the first that is recognised speaks for all."""
    groups: dict[str, list[Path]] = {}
    for file in sorted(_files(path), key=_natural):
        if file.name.endswith(ENDINGS):
            groups.setdefault(re.sub(r"\d+", "N", str(file).removeprefix(str(path))), []).append(file)
    return list(groups.values())


def _files(path: Path) -> list[Path]:
    files = []
    for file in files_below(path):
        if is_file(file) and (is_remote(file) or not special(file, 0)):
            files.append(file)
        if len(files) > MOST_FILES:
            raise UsageError(f"{path} holds more than {MOST_FILES} files", "give the folder of the dumps themselves")
    return files


def _export_of(path: Path, of_trainer: bool) -> Export | None:
    if path.name.endswith((*PICKLES, *ARCHIVES)):
        return None
    exports = [export for export in all_exports().values() if not export.is_folder]
    whole = next((export for export in exports if export.recognise(path)), None)
    if whole is None and of_trainer:
        needed = {*IDENTITY, "trainer_logprob"}
        return next((export for export in exports if export.columns and needed <= set(export.columns(path))), None)
    return whole


def _natural(path: Path) -> list[tuple[bool, int, str]]:
    """Return a key that sorts step_2 before step_10."""
    return [(piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in re.split(r"(\d+)", str(path))]


def _check_beginning(path: Path) -> None:
    """Raise NotFinished if JSON lines cannot be read up to the first record."""
    faults = Faults()
    if is_json_lines(path) and next(json_lines(path, faults), None) is None and faults.unread:
        raise NotFinished(faults.lines()[-1], "is it whole, and of the format that you take it for?")


def _unknown(path: Path, of_trainer: bool) -> UsageError:
    pickles = [path] if path.is_file() else _files(path)
    pickled = next((file for file in pickles if file.name.endswith(PICKLES)), None)
    if pickled is not None:
        return UsageError(
            f"{pickled} is a pickle, and loading a pickle runs the code in it: rlaudit never does",
            "convert it where you trust it: examples/exporters/skyrl.py turns SkyRL's dumped_data into JSONL, "
            "and shows how for any other",
        )
    if path.name.endswith(ARCHIVES):
        return UsageError(
            f"{path} is an archive, and what is packed in it is not read", "unpack it and give the folder"
        )
    formats = "".join(f"\n    {export.title}: {export.files}" for export in all_exports().values())
    return UsageError(
        f"{path} is no token table that rlaudit knows{_content(path, of_trainer)}",
        f"{_renaming(path, of_trainer)}what is read:{formats}",
    )


def _content(path: Path, of_trainer: bool) -> str:
    """Return what the file is instead, "" if that is unknown."""
    if not path.is_file():
        return ""
    if not size_of(path):
        return ": it is empty"
    names = _names(path)
    if names:
        missing = _missing(names, of_trainer)
        shown = ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)
        elsewhere = f" (--columns COLUMN={missing[0]} if it has another name)" if missing else ""
        return f": it holds {shown}, and a table of tokens needs {' and '.join(missing)} as well{elsewhere}"
    if beginning(path).startswith(MAGIC):
        return ": it is Parquet without its end; was it still being written?"
    return ": its first lines are not JSON, an object each" if is_json_lines(path) else ""


def _renaming(path: Path, of_trainer: bool) -> str:
    """Return the option that renames columns whose names are nearly ours; "" if none is."""
    names = _names(path) if path.is_file() else []
    alike = {ours: nearest(ours, names) for ours in _missing(names, of_trainer)}
    options = " ".join(f"--columns {theirs}={ours}" for ours, theirs in alike.items() if theirs)
    return f"columns that have other names are named: {options}; otherwise " if options else ""


def _names(path: Path) -> list[str]:
    return columns_of(path) or csv_columns(path) or list(first_record(path))


def _missing(names: Sequence[str], of_trainer: bool) -> list[str]:
    """Return the columns that a table of these needs as well."""
    columns = {PLURALS.get(name, name) for name in names}
    needed = (*IDENTITY, "trainer_logprob") if of_trainer else REQUIRED
    return [name for name in needed if name not in columns]


def check_readable(path: Path) -> None:
    """Raise UsageError for a path that does not exist or cannot be looked at, and for a special file."""
    if is_remote(path):
        if not exists(path):
            raise UsageError(f"{path}: no such file", "is the bucket right, and the name within it?")
        return
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file", "expected a log of rollouts, or a folder of them") from error
    except (OSError, ValueError, RuntimeError) as error:
        # A name too long for the file system, one with a NUL, a circle of links, a folder that is not ours.
        raise UsageError(f"{path} cannot be looked at: {error}", "give a file or a folder") from error
    what = special(path, kind)
    if what:
        raise UsageError(f"{path} is {what}, expected a file or a folder", "copy what it holds into a file")


def special(path: Path, kind: int) -> str:
    """Return what a path is that is neither a plain file nor a folder, "" for one that is. kind: of its mode."""
    resolved = path.resolve()
    if any(resolved.is_relative_to(folder) for folder in KERNEL_FILES):
        return SPECIAL_FILES.get(kind, "a file of the kernel")
    return SPECIAL_FILES.get(kind, "")
