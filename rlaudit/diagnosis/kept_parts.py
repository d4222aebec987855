"""The parts of a log, kept in a folder: a second look, or one file more, costs only what is new.

    STATE/log.json      which files the log has, in order, and what its parts were read with
    STATE/parts/KEY     what one file adds (`part_file.py`)

The key of a part is made of everything that decides what is in it: the file's name and version, the release that read
it, and the options that the sums depend on. So parts of several machines may be kept in one folder or in many, and are
found wherever they lie.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import rlaudit
from rlaudit.diagnosis.comparison import CompareSettings
from rlaudit.diagnosis.log_part import LogPart, shares_of
from rlaudit.diagnosis.part_file import FORMAT, read_part_file, write_part
from rlaudit.errors import NotFinished, UsageError
from rlaudit.measurement.metric import Clip, ObjectiveSettings
from rlaudit.parse_json import parse_json
from rlaudit.remote_path import file_version, log_path
from rlaudit.tokens.export import Part
from rlaudit.tokens.open_table import TokenTable, all_exports
from rlaudit.tokens.renamed_columns import RenamedColumns
from rlaudit.write_atomically import write_atomically

LOG, PARTS = "log.json", "parts"


class KeptParts:
    """The writing side: one folder for one log."""

    def __init__(self, folder: Path, table: TokenTable, settings: CompareSettings) -> None:
        self._parts = folder / PARTS
        self._folder, self._table, self._settings = folder, table, settings
        self._read_with = _read_with(table, settings)
        self._keys = {file: self._key(file) for file in table.files}

    def begin(self, told: Mapping[str, Any], source: str) -> None:
        """Write down what the log is. told: what is known of its sampling, and by what source. Raises NotFinished."""
        log = {
            "path": str(self._table.path),
            **self._read_with,
            "told": dict(told),
            "source": source,
            "files": [[_name(self._table, file), key] for file, key in self._keys.items()],
        }
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / LOG, (json.dumps(log, indent=1) + "\n").encode())
        except OSError as error:
            raise NotFinished(
                f"{self._folder} cannot keep what is read: {error}", "give --state another folder"
            ) from error

    def part(self, file: Path) -> LogPart | None:
        """What was kept of a file as it is now; None where nothing was, or where it is damaged."""
        path = self._parts / self._keys[file]
        try:
            return read_part_file(path, self._settings) if path.is_file() else None
        except NotFinished:
            return None

    def keep(self, file: Path, part: LogPart) -> None:
        """Keep what was read of a file. Raises NotFinished."""
        try:
            write_part(part, self._parts / self._keys[file])
        except OSError as error:
            raise NotFinished(
                f"{self._folder} cannot keep what is read: {error}", "give --state another folder"
            ) from error

    def _key(self, file: Path) -> str:
        decides = [FORMAT, rlaudit.__version__, _name(self._table, file), file_version(file), self._read_with]
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class MergedLog:
    """A log whose parts lie in state folders, all of them. told, source: of its sampling."""

    table: TokenTable
    settings: CompareSettings
    told: Mapping[str, Any]
    source: str
    files: tuple[Path, ...]

    def parts(self) -> Iterator[LogPart]:
        """In the order of the log's files. Raises NotFinished for one that is damaged."""
        for file in self.files:
            yield read_part_file(file, self.settings)


def merged_log(folders: Sequence[Path], settings: CompareSettings) -> MergedLog:
    """The log that state folders hold together.

    Raises UsageError for a folder that holds no state and for states of different logs, NotFinished where parts are
    missing.
    """
    logs = [_log(folder) for folder in folders]
    for folder, log in zip(folders, logs, strict=True):
        if log != logs[0]:
            other = next(name for name in logs[0] if log.get(name) != logs[0][name])
            raise UsageError(
                f"{folders[0]} and {folder} hold states of different logs: {other} differs",
                "were files added between the shards, or were they read with other options?",
            )
    log, found, missing = logs[0], [], []
    for name, key in log["files"]:
        path = next((path for folder in folders if (path := folder / PARTS / key).is_file()), None)
        found += [path] if path is not None else []
        missing += [name] if path is None else []
    if missing:
        raise NotFinished(
            f"{len(missing)} of {len(log['files'])} files of {log['path']} were not read yet, first {missing[0]}",
            "run the shards that are missing, or give their states with --merge as well",
        )
    export = all_exports()[log["export"]]
    part = Part(log["part"], log["where"], log["groups"], RenamedColumns(log["renamed"]))
    table = TokenTable(log_path(log["path"]), export, tuple(Path(name) for name, _ in log["files"]), part)
    clips = tuple(Clip(clip) for clip in log["objective"]["clips"])
    objective = ObjectiveSettings(**{**log["objective"], "clips": clips})
    return MergedLog(
        table,
        replace(settings, objective=objective, trainer_excludes=log["trainer_excludes"]),
        log["told"],
        log["source"],
        tuple(found),
    )


def parse_shard(text: str) -> tuple[int, int]:
    """I/N as (I, N). Raises UsageError for anything else."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise UsageError(f"--shard is {text!r}, expected I/N with I from 1 to N, as 3/64")
    return int(number), int(of)


def _log(folder: Path) -> dict[str, Any]:
    try:
        log = parse_json((folder / LOG).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{folder} holds no state of a log", "compare LOG --state DIR makes one") from error
    except (OSError, ValueError) as error:
        raise NotFinished(
            f"{folder / LOG} cannot be read: {error}", "compare LOG --state DIR writes it again"
        ) from error
    if log.get("format") != FORMAT or log.get("rlaudit") != rlaudit.__version__:
        raise NotFinished(
            f"{folder} was written by rlaudit {log.get('rlaudit')}, this is {rlaudit.__version__}",
            "states of different releases are not put together: run the shards again",
        )
    return dict(log)


def _read_with(table: TokenTable, settings: CompareSettings) -> dict[str, Any]:
    """Everything but the file that decides what a part holds."""
    return {
        "format": FORMAT,
        "rlaudit": rlaudit.__version__,
        "export": table.export.name,
        "part": table.part.name,
        "where": dict(table.part.where),
        "groups": table.part.groups,
        "renamed": dict(table.part.renamed.theirs),
        "objective": asdict(settings.objective),
        "trainer_excludes": settings.trainer_excludes,
        "evidence_tokens": settings.evidence_tokens,
        "shares": shares_of(len(table.files)),
    }


def _name(table: TokenTable, file: Path) -> str:
    return file.name if file == table.path else str(file.relative_to(table.path))
