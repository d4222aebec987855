"""Finds out what a path on the command line is, and reads it: a file, a folder, or one run of several (`PATH#RUN`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.curves import readers
from rlaudit.curves.readers import mlflow, wandb_server
from rlaudit.curves.run_log import Problem, Problems, Row, RunLog, RunReader
from rlaudit.discover import discover
from rlaudit.errors import NotFinished, UsageError

FIRST_BYTES = 64 * 1024
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class RunFiles:
    """Files of one sink that make up one run, or several named ones."""

    reader: RunReader
    paths: tuple[Path, ...]


def known_readers() -> dict[str, RunReader]:
    """Return every reader, those that look most closely first."""
    return dict(sorted(discover(readers, "READER", RunReader).items(), key=lambda item: item[1].rank))


def open_run(text: str, sink: str | None) -> RunLog:
    """Read what `text` names. sink: a reader's name if the user chose one.

    Raises UsageError if there is no such path or run, or several and none is named; NotFinished if no reader can read
    it.
    """
    rows, problems, source = _read(text, sink)
    chosen = _of_run(rows, _split(text)[1], text, source.reader)
    if not chosen:
        first = f": {problems[0]}" if problems else ""
        raise NotFinished(
            f"{text} holds no metrics{first}", f"it was read as {source.reader.title}; --format names another"
        )
    return RunLog(text, source.reader, source.paths, tuple(chosen), tuple(problems))


def runs_in(text: str, sink: str | None) -> list[str]:
    """Return the names of the runs in what `text` names, in the order in which they begin; none if it holds one."""
    return list(dict.fromkeys(row.run for row in _read(text, sink)[0] if row.run is not None))


def runs_below(text: str, sink: str | None) -> list[str]:
    """Return every run in what `text` names, as `open_run` takes them: a run, a file of several, or a folder of runs.

    A folder whose files belong to one run is that run; in any other each log is one, and each folder is looked into.
    """
    path, chosen = _split(text)
    if chosen is not None:
        return [text]
    if is_in_a_store(text):
        return [text]
    if not path.is_dir():
        return [f"{text}#{run}" for run in runs_in(text, sink)] or [text]
    logs = _logs(path, sink, "")
    if logs is not None and (logs[0].whole_folder or len(logs[1]) == 1):
        return [f"{text}#{run}" for run in runs_in(text, sink)] or [text]
    if logs is not None and logs[0].joins:
        named = [f"{text}#{run}" for run in runs_in(text, sink)]
        if named or not _begin_alike(*logs):
            return named or [text]
    inside = sorted(path.iterdir()) if logs is None else logs[1]
    return [run for child in inside if child.is_dir() or _is_log(child, sink) for run in runs_below(str(child), sink)]


def _begin_alike(reader: RunReader, logs: Sequence[Path]) -> bool:
    """Return whether all files begin with the same step of the same metrics: a run that goes on in a file does not."""
    firsts = [next(iter(reader.read(log, Problems(log))), None) for log in logs]
    begun = [(str(row.step), tuple(row.values)) for row in firsts if row is not None]
    return len(begun) == len(logs) and len(set(begun)) == 1


def _read(text: str, sink: str | None) -> tuple[list[Row], list[Problem], RunFiles]:
    path = _split(text)[0]
    if sink is not None and sink not in known_readers():
        raise UsageError(f"no reader is called {sink!r}", f"there are: {', '.join(known_readers())}")
    source = _in_folder(path, sink) if path.is_dir() else _of_file(path, sink)
    rows: list[Row] = []
    problems: list[Problem] = []
    for file in source.paths:
        met = Problems(file)
        try:
            rows += source.reader.read(file, met)
        except OSError as error:
            raise NotFinished(f"{file} cannot be read: {error.strerror}") from error
        problems += met.listed()
    return rows, problems, source


def is_in_a_store(text: str) -> bool:
    """Return whether `text` names a run of a store that is no path: MLflow's `runs:/RUN_ID`, or one of W&B's server."""
    return text.startswith((mlflow.SCHEME, wandb_server.SCHEME))


def _split(text: str) -> tuple[Path, str | None]:
    if Path(text).exists() or is_in_a_store(text):
        return Path(text), None
    name, mark, run = text.rpartition("#")
    if mark and Path(name).exists():
        return Path(name), run
    raise UsageError(f"{name if mark else text}: no such file", "expected a log of a training, or the folder of a run")


def _of_file(path: Path, sink: str | None) -> RunFiles:
    if sink is not None:
        return RunFiles(known_readers()[sink], (path,))
    start = b"" if is_in_a_store(str(path)) else _first_bytes(path)
    for reader in known_readers().values():
        if reader.recognises(path, start):
            return RunFiles(reader, (path,))
    if start.startswith(GZIP):
        raise NotFinished(f"{path} is packed with gzip", "unpack it first: gunzip --keep")
    raise NotFinished(
        f"{path} is no log that is known here", f"known: {', '.join(known_readers())}; --format names one"
    )


def _in_folder(folder: Path, sink: str | None) -> RunFiles:
    """Return the files of the first reader that recognises some, in the folder or, if there are none, below it."""
    for below in ("", "**/"):
        logs = _logs(folder, sink, below)
        if logs is not None:
            return RunFiles(logs[0], _one_run(logs[1], logs[0], folder))
    looked = sorted({pattern for reader in _readers(sink) for pattern in reader.files})
    raise NotFinished(f"no log found in {folder}", f"looked for {', '.join(looked)}")


def _is_log(path: Path, sink: str | None) -> bool:
    return path.is_file() and any(reader.recognises(path, _first_bytes(path)) for reader in _readers(sink))


def _readers(sink: str | None) -> list[RunReader]:
    return [reader for reader in known_readers().values() if sink in (None, reader.name)]


def _logs(folder: Path, sink: str | None, below: str) -> tuple[RunReader, list[Path]] | None:
    """Return the logs of the first reader that recognises some; None if no reader does."""
    for reader in _readers(sink):
        for pattern in reader.files:
            logs = [path for path in sorted(folder.glob(below + pattern)) if path.is_file()]
            logs = [path for path in logs if reader.recognises(path, _first_bytes(path))]
            if logs:
                return reader, logs
    return None


def _one_run(logs: Sequence[Path], reader: RunReader, folder: Path) -> tuple[Path, ...]:
    if reader.whole_folder:
        return (max(logs, key=lambda path: (len(path.parent.name), path.parent.name)),)
    folders = {path.parent for path in logs}
    if len(logs) == 1 or (reader.joins and len(folders) == 1):
        return tuple(logs)
    listed = ", ".join(str(path.relative_to(folder)) for path in logs[:6])
    raise UsageError(f"{folder} holds several runs: {listed}{', ...' * (len(logs) > 6)}", "name one of them")


def _of_run(rows: Sequence[Row], run: str | None, text: str, reader: RunReader) -> list[Row]:
    names = sorted({row.run for row in rows if row.run is not None})
    if run is None:
        if len(names) > 1:
            raise UsageError(f"{text} holds the runs {', '.join(names)}", f"name one: {text}#{names[0]}")
        return list(rows)
    if run not in names:
        hint = f"it holds {', '.join(names)}" if names else f"{reader.title} holds one run, without a name"
        raise UsageError(f"{text}: no run is called {run!r}", hint)
    return [row for row in rows if row.run == run]


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(FIRST_BYTES)
    except OSError as error:
        raise NotFinished(f"{path} cannot be read: {error.strerror}") from error
