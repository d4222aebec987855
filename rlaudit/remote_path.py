"""A file or folder in an object store or behind a web address, answering as a path of this machine does.

Covered: what reading logs asks of a path, in every store that fsspec has a client for. Credentials and endpoints are
those that the store's own tools use. What a client answers, in the exceptions of five libraries, becomes a sentence
here and nowhere else: a log that cannot be read to its end is no log to judge.
Not covered: writing.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from rlaudit.errors import NotFinished, RlauditError, UsageError

# The package that speaks to a store; all of them come with the extra `remote`.
CLIENTS: Mapping[str, str] = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "hf": "huggingface_hub",
    "https": "aiohttp",
    "http": "aiohttp",
}
MARK = "://"
# What is fetched at once of a file that is read from beginning to end.
AHEAD = 8 << 20
# What tells one version of an object from the next, by store.
VERSIONS = ("ETag", "etag", "blob_id", "generation", "md5Hash", "LastModified", "mtime", "updated", "size")


def log_path(text: str) -> Path:
    """The path that a user gave, in a store where it says so.

    Raises UsageError for a store that is not known, NotFinished where the package for it is missing.
    """
    if MARK not in text:
        return Path(text)
    store = text.partition(MARK)[0]
    if store not in CLIENTS:
        raise UsageError(f"{text}: {store}{MARK} is not read", f"there are: {', '.join(f'{s}{MARK}' for s in CLIENTS)}")
    # It answers what a path is asked where logs are read; mypy is told that it is one, and nobody else asks.
    return cast(Path, RemotePath(text.rstrip("/")))


@dataclass(frozen=True)
class RemotePath:
    """url: as it was given, without a slash at its end. known: what a listing said of it already."""

    url: str
    known: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _ = self.store

    def __str__(self) -> str:
        """Without a query, which may be the signature that opens it."""
        return self.url.partition("?")[0]

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(f"{self}/{name}")

    @property
    def name(self) -> str:
        """The last piece."""
        return str(self).rpartition("/")[2]

    @property
    def parent(self) -> "RemotePath":
        """The folder; of a bucket, itself."""
        above = str(self).rpartition("/")[0]
        return RemotePath(above) if urlsplit(above).netloc else self

    @property
    def on_the_web(self) -> bool:
        """Whether a plain web server is asked, not a store."""
        return self.url.startswith("http")

    @property
    def version(self) -> str:
        """What changes with the object's bytes, as far as the store tells. Raises FileNotFoundError for none."""
        info = self._info
        return " ".join(f"{name}={info[name]}" for name in VERSIONS if info.get(name) is not None)

    @property
    def size(self) -> int:
        """Bytes; 0 where the store does not tell. Raises FileNotFoundError where there is nothing."""
        return int(self._info.get("size") or 0)

    def is_file(self) -> bool:
        """Whether there is an object of this name."""
        return self._kind == "file"

    def is_dir(self) -> bool:
        """Whether there are objects below this name."""
        return self._kind == "directory"

    def exists(self) -> bool:
        """Whether there is either."""
        return bool(self._kind)

    def open(self, mode: str = "rb", at_random: bool = False) -> io.BufferedReader:
        """The object's bytes. at_random: nothing is fetched beyond what is asked for."""
        with _asked(self):
            if at_random:
                raw = self.store.open(self._place, "rb", cache_type="none")
            else:
                # A web server that does not offer parts of a file is read as it sends it.
                in_parts = not self.on_the_web or self._info.get("partial", False)
                ahead = AHEAD if in_parts else 0
                raw = self.store.open(self._place, "rb", cache_type="readahead", block_size=ahead)
        return io.BufferedReader(_RemoteFile(self, raw))

    def read_bytes(self) -> bytes:
        """All of them."""
        with self.open() as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """All of it."""
        return self.read_bytes().decode(encoding)

    def rglob(self, pattern: str) -> "Iterator[RemotePath]":
        """Every object below; no other pattern than "*" is asked for."""
        assert pattern == "*"
        with _asked(self):
            found = self.store.find(self._place, detail=True)
        for place, info in found.items():
            yield RemotePath(str(self.store.unstrip_protocol(place)), info)

    def glob(self, pattern: str) -> "list[RemotePath]":
        """The objects below that fit."""
        with _asked(self):
            found = self.store.glob(f"{self._place}/{pattern}")
        return [RemotePath(str(self.store.unstrip_protocol(place))) for place in found]

    def relative_to(self, folder: "RemotePath") -> str:
        """What is left of the name below a folder that it lies in."""
        return str(self).removeprefix(f"{folder}/")

    @property
    def _kind(self) -> str:
        try:
            return str(self._info.get("type", "file"))
        except FileNotFoundError:
            return ""

    @property
    def _info(self) -> Mapping[str, Any]:
        if self.known is not None:
            return self.known
        with _asked(self):
            info = self.store.info(self._place)
        object.__setattr__(self, "known", info)
        return cast(Mapping[str, Any], info)

    @property
    def _place(self) -> str:
        return str(self.store._strip_protocol(self.url))

    @property
    def store(self) -> Any:
        """fsspec's client. Raises NotFinished where the package for it is missing."""
        protocol = self.url.partition(MARK)[0]
        try:
            import fsspec

            # Clients are kept by fsspec: asking for one again costs nothing.
            return fsspec.filesystem(protocol)
        except ImportError as error:
            raise NotFinished(
                f"{self} is read with the package {CLIENTS[protocol]}, which is not here",
                "pip install 'rlaudit[remote]' brings it",
            ) from error


class _RemoteFile(io.RawIOBase):
    """What a client opened; where it fails, it says at which byte of how many."""

    def __init__(self, path: RemotePath, raw: Any) -> None:
        self._path, self._raw = path, raw
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._raw.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _asked(self._path, self._at):
            self._at = int(self._raw.seek(offset, whence))
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        with _asked(self._path, self._at):
            data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


@contextmanager
def _asked(path: RemotePath, at: int | None = None) -> Iterator[None]:
    """Raises NotFinished with what the store said, FileNotFoundError where it has no such object."""
    try:
        yield
    except RlauditError:
        raise
    except Exception as error:  # of a client, of the libraries below it, or of the network
        if isinstance(error, FileNotFoundError) and not (path.on_the_web and _other_than_missing(error)):
            raise
        where = f"{path}" if at is None else f"{path}: byte {at} of {path.size}"
        reason = error.__cause__ or error
        said = " ".join(str(reason).split()) or type(reason).__name__
        raise NotFinished(f"{where} cannot be read: {said}", _way_out(path, error)) from error


def _other_than_missing(error: FileNotFoundError) -> bool:
    """Whether a web server refused, or did not answer: its client calls that a missing file, too."""
    return error.__cause__ is not None and getattr(error.__cause__, "status", None) not in {404, 410}


def _way_out(path: RemotePath, error: Exception) -> str:
    if isinstance(error, PermissionError) or "redential" in type(error).__name__:
        return "which credentials are used, and may they read it? they are found as the store's own tools find them"
    return "nothing is judged of a part; once the store answers, the same command reads it again"


def open_at_random(path: Path) -> "str | BinaryIO":
    """What pyarrow reads a Parquet file from."""
    remote = cast(Any, path)
    return cast(BinaryIO, remote.open(at_random=True)) if isinstance(remote, RemotePath) else str(path)


def is_remote(path: Path) -> bool:
    """Whether it lies in a store."""
    return isinstance(cast(Any, path), RemotePath)


def store_of(path: Path) -> Any:
    """fsspec's client of the store in which a path lies."""
    return cast(Any, path).store


def size_of(path: Path) -> int:
    """Bytes."""
    remote = cast(Any, path)
    return remote.size if isinstance(remote, RemotePath) else path.stat().st_size


def file_version(path: Path) -> str:
    """What changes with a file's bytes: size and time of change, or what its store tells."""
    remote = cast(Any, path)
    if isinstance(remote, RemotePath):
        return remote.version
    state = path.stat()
    return f"{state.st_size} {state.st_mtime_ns}"
