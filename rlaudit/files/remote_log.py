"""Logs in object stores and behind web addresses, as paths of universal-pathlib over fsspec's clients.

Credentials and endpoints are those that the store's own tools use. The clients' exceptions, of five libraries, become a
sentence here and nowhere else: a log that cannot be read to its end is no log to judge.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

from rlaudit.errors import NotFinished, RlauditError, UsageError
from rlaudit.files.install_beside import install_beside

# The package that speaks to a store; all of them come with the extra `remote`.
CLIENTS: Mapping[str, str] = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "hf": "huggingface_hub",
    "https": "aiohttp",
    "http": "aiohttp",
}
MARK = "://"
# Bytes fetched at once of a file that is read from beginning to end.
AHEAD = 8 << 20


def log_path(text: str) -> Path:
    """Return the path that a user gave, in a store if it names one.

    Raises UsageError for an unknown store, NotFinished if the package for it is missing.
    """
    store, mark, _ = text.partition(MARK)
    if not mark:
        return Path(text)
    if store not in CLIENTS:
        raise UsageError(f"{text}: {store}{MARK} is not read", f"there are: {', '.join(f'{s}{MARK}' for s in CLIENTS)}")
    # The query of a web address may be the signature that opens it: it is sent and not shown.
    address, _, query = text.partition("?")
    sent: dict[str, Any] = {"params": dict(parse_qsl(query))} if query else {}
    try:
        from upath import UPath

        path = UPath(address.rstrip("/"), **sent)
        _ = path.fs
    except ImportError as error:
        raise NotFinished(
            f"{address} is read with the package {CLIENTS[store]}, which is not here",
            f"install it: {install_beside('universal-pathlib', CLIENTS[store])}",
        ) from error
    # It has the methods that are used of a path, and is no Path to the type checker.
    return cast(Path, path)


def is_remote(path: Path) -> bool:
    """Return whether a path is in a store."""
    return not isinstance(path, Path)


def exists(path: Path) -> bool:
    """Return whether the file or folder exists. Raises NotFinished if the store does not answer."""
    return path.exists() if not is_remote(path) else _info(path) is not None


def is_file(path: Path) -> bool:
    """Return whether the file exists. Raises NotFinished if the store does not answer."""
    return path.is_file() if not is_remote(path) else (_info(path) or {}).get("type") == "file"


def size_of(path: Path) -> int:
    """Return the size in bytes; 0 if the store does not report it."""
    return path.stat().st_size if not is_remote(path) else (_info(path) or {}).get("size") or 0


def files_below(path: Path) -> Iterator[Path]:
    """Yield everything below a folder. Raises NotFinished if the store does not list it."""
    if not is_remote(path):
        yield from path.rglob("*")
        return
    with _reading(path):
        yield from path.rglob("*")


def opened_log(path: Path, at_random: bool = False) -> io.BufferedReader:
    """Open a log for reading bytes. at_random: nothing is fetched beyond what is read.

    Raises NotFinished, while reading as well, if the store does not send them; OSError for a file of this machine.
    """
    if not is_remote(path):
        return path.open("rb")
    # A web server that does not offer parts of a file is read as it sends it.
    in_parts = not _on_the_web(path) or (_info(path) or {}).get("partial", False)
    with _reading(path):
        cache = {"cache_type": "none"} if at_random else {"cache_type": "readahead", "block_size": AHEAD * in_parts}
        raw = cast(Any, path).open("rb", **cache)
    return io.BufferedReader(_Sent(path, raw))


class _Sent(io.RawIOBase):
    """The bytes that a client sends; an error names the byte at which it failed, and their number."""

    def __init__(self, path: Path, raw: Any) -> None:
        self._path, self._raw = path, raw
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._raw.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _reading(self._path, self._at):
            self._at = int(self._raw.seek(offset, whence))
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        with _reading(self._path, self._at):
            data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


def _info(path: Path) -> dict[str, Any] | None:
    """Return the store's metadata of a path; None if it has nothing of that name."""
    remote = cast(Any, path)
    try:
        with _reading(path):
            return dict(remote.fs.info(remote.path))
    except FileNotFoundError:
        return None


@contextmanager
def _reading(path: Path, at: int | None = None) -> Iterator[None]:
    """Raise NotFinished with the store's message, FileNotFoundError if it has no such object."""
    try:
        yield
    except RlauditError:
        raise
    except Exception as error:  # of a client, of the libraries below it, or of the network
        if isinstance(error, FileNotFoundError) and not (_on_the_web(path) and _refused(error)):
            raise
        where = f"{path}" if at is None else f"{path}: byte {at} of {size_of(path)}"
        reason = error.__cause__ or error
        message = " ".join(str(reason).split()) or type(reason).__name__
        raise NotFinished(f"{where} cannot be read: {message}", _way_out(error)) from error


def _on_the_web(path: Path) -> bool:
    """Return whether the path is on a plain web server, not in a store."""
    return str(path).startswith("http")


def _refused(error: FileNotFoundError) -> bool:
    """Return whether a web server refused or did not answer, which its client reports as a missing file, too."""
    return error.__cause__ is not None and getattr(error.__cause__, "status", None) not in {404, 410}


def _way_out(error: Exception) -> str:
    if isinstance(error, PermissionError) or "redential" in type(error).__name__:
        return "which credentials are used, and may they read it? they are found as the store's own tools find them"
    return "nothing is judged of a part; once the store answers, the same command reads it again"
