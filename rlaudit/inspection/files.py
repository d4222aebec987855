"""The files that are inspected, each read once, and why others are not.

A named file is read, also one without a known ending. A folder is walked: hidden entries, virtual environments and
packages are left out, linked folders are not followed (so no loop can be entered), nor is a link that leaves the work
trees of all named paths, and only kinds of file that configs are written in are opened. A recording that is named
counts as one file. Byte order marks, UTF-16 and line ends stay what they were.
"""

import codecs
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from rlaudit.configs.recorded_source import RecordedSource, recorded_source
from rlaudit.configs.source import LARGEST_BYTES, SHELL, Source
from rlaudit.errors import NotFinished
from rlaudit.files.read_regular import read_regular
from rlaudit.files.standard_input import DASH
from rlaudit.files.work_tree import is_inside, trees_of

if TYPE_CHECKING:
    from rlaudit.recording.recording import Recording

_OF_DATA = (".yaml", ".yml", ".json", ".toml", ".py", ".log", ".dockerfile", ".containerfile")
SUFFIXES = SHELL | {*_OF_DATA}
NAMES = ("dockerfile", "containerfile")
LEFT_OUT = frozenset({"node_modules", "__pycache__", "site-packages"})
STDIN = DASH
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_STDIN = "stdin"
_PYTHON = re.compile(r"^(?:import \w|from [\w.]+ import |def \w|class \w|async def )", re.M)
_SHELL = re.compile(
    r"^[ \t]*(?:(?:export[ \t]+)?[A-Z_]+=\S*[ \t]+)*"
    r"(?:export|vllm serve|trl|torchrun|accelerate|ray|srun|uv run|python3?|docker)\s",
    re.M,
)
_DOCKERFILE = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n|ARG [^\n]*\n)*FROM \S")


class NotText(ValueError):
    """Bytes that cannot be a config's text."""


@dataclass(frozen=True)
class Encoding:
    """How a file spells its characters."""

    name: str = "utf-8"
    # The byte order mark, often empty.
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Return the bytes that decode to `text`."""
        return self.mark + text.encode(self.name)


@dataclass(frozen=True)
class TextFile:
    """A file that was read."""

    source: Source
    encoding: Encoding
    # Whether the command line names it, and not only a folder above it.
    named: bool

    @property
    def path(self) -> str:
        """The path as the user gave it."""
        return self.source.path


@dataclass(frozen=True)
class Unread:
    """A file or folder that was not read, and why."""

    path: str
    reason: str
    named: bool
    # Whether its words, which could not be parsed, may be about rollouts.
    may_matter: bool = False

    @property
    def wanted(self) -> bool:
        """Whether the audit is unfinished without it."""
        return self.named or self.may_matter


@dataclass(frozen=True)
class Collected:
    """The files of an inspection."""

    files: tuple[TextFile, ...]
    unread: tuple[Unread, ...]
    # How many files of other kinds were left out.
    others: int


def recordings_alone(collected: Collected) -> "tuple[Recording, ...]":
    """Return the recordings if all files are recordings; () otherwise."""
    sources = [file.source for file in collected.files]
    recordings = tuple(source.recording for source in sources if isinstance(source, RecordedSource))
    return recordings if len(recordings) == len(sources) and not collected.unread else ()


def collect(
    paths: Sequence[str], named_stdin: str | None, excluded: Callable[[str], bool], given: tuple[str, ...] = (),
    pins: tuple[str, ...] = (),
) -> Collected:  # fmt: skip
    """Read every file that the paths name, each once, however often it is named or linked. given, pins: Source's."""
    files: dict[object, TextFile] = {}
    unread: list[Unread] = []
    others = 0
    trees = trees_of(*(named_stdin or path if path == STDIN else path for path in paths), *given)
    for path, named in _candidates(paths, unread):
        if isinstance(path, Source):
            files[_identity(path.path)] = TextFile(replace(path, trees=trees), Encoding(), named)
            continue
        if path == STDIN:
            identity: object = STDIN
        elif excluded(path):
            continue
        elif not named and not _of_interest(path, trees):
            others += 1
            continue
        elif not named and not is_inside(path, trees):
            unread.append(Unread(path, "a link that leaves the work tree, not followed", named))
            continue
        else:
            identity = _identity(path)
        if identity in files:
            continue
        try:
            text, encoding = decode(_standard_input() if path == STDIN else _bytes(path))
        except (OSError, ValueError) as error:  # ValueError: NotText, or a path that no system call takes
            unread.append(Unread(path, reason(error), named))
            continue
        name = path if path != STDIN else named_stdin or stdin_name(text)
        files[identity] = TextFile(Source(name, text, given, trees, pins=pins), encoding, named)
    return Collected(tuple(files.values()), tuple(unread), others)


def text_of(path: str) -> str | None:
    """Return the text of one more file, None if it cannot be read."""
    try:
        return decode(_bytes(path))[0]
    except (OSError, ValueError):
        return None


def reason(error: Exception) -> str:
    """Return an error's reason, `permission denied`, without the path that every message names already."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)


def _candidates(paths: Sequence[str], unread: list[Unread]) -> Iterator[tuple[str | Source, bool]]:
    for path in paths:
        try:
            recorded = None if path == STDIN else recorded_source(path)
        except (NotFinished, OSError, ValueError) as error:
            unread.append(Unread(path, reason(error), named=True))
            continue
        if recorded is not None:
            yield recorded, True
        elif path != STDIN and _is_folder(path):
            yield from ((path, False) for path in walk(path, unread))
        else:
            yield path, True


def walk(folder: str, unread: list[Unread]) -> Iterator[str]:
    """Yield the files below a folder that may be of interest. unread: takes what cannot be entered."""
    folders = [folder]
    while folders:
        current = folders.pop()
        try:
            with os.scandir(current) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            unread.append(Unread(current, reason(error), named=current == folder))
            continue
        if current != folder and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        deeper = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name in LEFT_OUT:
                continue
            if entry.is_dir(follow_symlinks=False):
                deeper.append(entry.path)
            elif _is_folder(entry.path):
                unread.append(Unread(entry.path, "a linked folder, not followed", named=False))
            else:
                yield entry.path.removeprefix("./")
        folders += reversed(deeper)


def _of_interest(path: str, trees: tuple[str, ...]) -> bool:
    pure = PurePath(path)
    name = pure.name.lower()
    if pure.suffix.lower() in SUFFIXES or name.startswith(NAMES):
        return True
    return not pure.suffix and is_inside(path, trees) and _has_shebang(path)


def _has_shebang(path: str) -> bool:
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return False
        with Path(path).open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def _identity(path: str) -> object:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return path
    return status.st_dev, status.st_ino


def _bytes(path: str) -> bytes:
    if stat.S_ISFIFO(Path(path).stat().st_mode):
        raise NotText("not a regular file; use - to read standard input")
    return read_regular(path, LARGEST_BYTES, "no config")


def _standard_input() -> bytes:
    data = sys.stdin.buffer.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise NotText(f"larger than {LARGEST_BYTES / 1e6:g} MB, which no config is")
    return data


def decode(data: bytes) -> tuple[str, Encoding]:
    """Return the text without its mark, and its encoding. Line ends are not translated. Raises NotText."""
    encoding = next((Encoding(name, mark) for mark, name in _MARKS if data.startswith(mark)), Encoding())
    if b"\0" in data and not encoding.name.startswith("utf-16"):
        raise NotText("binary")
    try:
        return data[len(encoding.mark) :].decode(encoding.name), encoding
    except UnicodeDecodeError as error:
        raise NotText(f"not {encoding.name.upper()}: {error.reason} at byte {error.start}") from None


def stdin_name(text: str) -> str:
    """Name standard input by what it looks like, as the reader of a file is chosen by its ending.

    `stdin.yaml` if nothing else is sure; a name that a user gives wins over this.
    """
    if text.startswith("#!"):
        return f"{_STDIN}{'.py' if 'python' in text.partition(chr(10))[0] else '.sh'}"
    if text.lstrip()[:1] == "{":
        return f"{_STDIN}.json"
    if _DOCKERFILE.match(text):
        return f"{_STDIN}.dockerfile"
    if _is_toml(text):
        return f"{_STDIN}.toml"
    if _PYTHON.search(text):
        return f"{_STDIN}.py"
    return f"{_STDIN}.sh" if _SHELL.search(text) else f"{_STDIN}.yaml"


def _is_toml(text: str) -> bool:
    import tomllib

    try:
        return bool(tomllib.loads(text))
    except (ValueError, RecursionError):
        return False
