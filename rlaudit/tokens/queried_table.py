"""Logs of any shape, as a token table that a query makes of them (`compare --sql`).

DuckDB reads the files, sorts and joins what does not fit into memory on the disk, and writes a Parquet table, which is
then read as any other. The files are called `log` in the query; those of a store are read by the store's own client.
Nothing is installed or fetched for a query.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlaudit.errors import NotFinished, UsageError
from rlaudit.remote_path import is_remote, store_of
from rlaudit.tokens.open_table import TokenTable, check_readable, open_tables

LOG = "log"
RESULT = "query.parquet"
# DuckDB's readers by the endings that they read; of CSV too, which is no token table by itself.
READERS: Mapping[tuple[str, ...], str] = {
    (".parquet",): "read_parquet($files, union_by_name = true)",
    (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".json.gz"): (
        "read_json_auto($files, union_by_name = true)"
    ),
    (".csv", ".csv.gz", ".csv.zst", ".tsv"): "read_csv_auto($files, union_by_name = true)",
}


def queried_table(path: Path, query: str, folder: Path) -> TokenTable:
    """The table that a query makes of a file, or of the files of a folder. folder: where the result is written.

    Raises UsageError for a query that fails or whose result is no token table, NotFinished where DuckDB is missing or
    files cannot be read.
    """
    try:
        import duckdb
    except ImportError as error:
        raise NotFinished("--sql needs DuckDB, which is not here", "pip install 'rlaudit[sql]' brings it") from error
    check_readable(path)
    files, reader = _files(path)
    result = folder / RESULT
    with duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": str(folder)}) as database:
        if is_remote(path):
            database.register_filesystem(store_of(path))
        _asked(database, f"CREATE VIEW {LOG} AS SELECT * FROM {reader.replace('$files', _listed(files))}", path)
        _asked(database, f"COPY ({query.strip().rstrip(';')}) TO {_quoted(result)} (FORMAT parquet)", path)
    try:
        (table,) = open_tables(result)
    except UsageError as error:
        raise UsageError(f"--sql: {error.message.replace(str(result), 'its result')}", error.hint) from error
    return replace(table, path=path)


def _asked(database: Any, statement: str, path: Path) -> None:
    import duckdb

    try:
        database.execute(statement)
    except (duckdb.IOException, duckdb.HTTPException, duckdb.OutOfMemoryException) as error:
        raise NotFinished(
            f"{path} cannot be queried: {_said(error)}", "may the files be read, and is there room?"
        ) from error
    except duckdb.Error as error:
        raise UsageError(f"--sql: {_said(error)}", f"the files of {path} are called {LOG} in the query") from error


def _files(path: Path) -> tuple[list[str], str]:
    """The files that can be queried, all of one kind, and what reads them."""
    found = [path] if path.is_file() else sorted((file for file in path.rglob("*") if file.is_file()), key=str)
    by_reader = {
        reader: [str(file) for file in found if file.name.endswith(endings)] for endings, reader in READERS.items()
    }
    by_reader = {reader: files for reader, files in by_reader.items() if files}
    if len(by_reader) != 1:
        what = "files of several kinds" if by_reader else "no Parquet, JSON lines or CSV"
        raise UsageError(f"{path} holds {what}: a query is over one table", "give the file itself")
    ((reader, files),) = by_reader.items()
    return files, reader


def _listed(files: list[str]) -> str:
    return f"[{', '.join(map(_quoted, files))}]"


def _quoted(text: "str | Path") -> str:
    return "'" + str(text).replace("'", "''") + "'"


def _said(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
