"""A file to read settings from, parsed at most once in each syntax."""

import os.path
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rlaudit.configs.syntax.node import Node
from rlaudit.files.read_regular import read_regular
from rlaudit.files.work_tree import is_inside, trees_of
from rlaudit.secrets import learn_text

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call
    from rlaudit.configs.syntax.shell_command import Command

Parsed = TypeVar("Parsed")
LARGEST_BYTES = 2_000_000
SHELL = frozenset({".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".pbs", ".lsf", ".job"})
_YAML = {".yaml", ".yml", ".json"}


@dataclass(frozen=True, eq=False)
class Way:
    """The files over which a user's file hands over to another one."""

    # The path of the user's file; empty if it is the file itself.
    first: str = ""
    # Variables that they name, each with a place: they may set them.
    variables: tuple[tuple[str, str], ...] = ()
    # The programs that import the file, the nearest first: they sample from its engine and update it.
    programs: tuple["Source", ...] = ()


@dataclass(frozen=True, eq=False)
class Source:
    """A file's text.

    A syntax in which the file is not written is empty. One that does not parse raises its Unreadable error (a
    ValueError), which is kept in `refusals`: a reader that goes on without it must not hide it.
    """

    # As the user gave it, for messages.
    path: str
    text: str
    # Folders with the source of a framework, from the command line.
    given: tuple[str, ...] = ()
    # The work trees in which further files may be read; those of `path` and `given` if empty.
    trees: tuple[str, ...] = ()
    # Whether it lies in none of them: it was not opened, is without text, and parses in no syntax.
    outside: bool = False
    # Releases of frameworks and of today's vLLM from the command line, as requirements: `trl==1.7.0`.
    pins: tuple[str, ...] = ()
    way: Way = Way()
    refusals: dict[object, ValueError | RecursionError] = field(default_factory=dict, repr=False)
    _calls: dict[frozenset[str], "tuple[Call, ...]"] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # No message about the file may show its secrets.
        learn_text(self.text)
        if not self.trees:
            object.__setattr__(self, "trees", trees_of(self.path, *self.given))

    def with_text(self, text: str) -> "Source":
        """Return the same file with another text."""
        return Source(self.path, text, self.given, self.trees, pins=self.pins, way=self.way)

    @property
    def suffix(self) -> str:
        """The file's ending in lower case, with the dot."""
        return Path(self.path).suffix.lower()

    @cached_property
    def yaml(self) -> tuple[Node, ...]:
        """The documents of a YAML or JSON file, with OmegaConf's interpolations resolved."""
        from rlaudit.configs.syntax.interpolation import interpolate

        return tuple(interpolate(root) for root in self.plain_yaml) if "${" in self.text else self.plain_yaml

    @cached_property
    def plain_yaml(self) -> tuple[Node, ...]:
        """The documents of a YAML or JSON file, with `${...}` as any other text."""
        from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

        return self._parsed("YAML", lambda: parse_plain_yaml(self.text, self.path)) if self.suffix in _YAML else ()

    @cached_property
    def toml(self) -> Node | None:
        """The root table of a TOML file."""
        from rlaudit.configs.syntax.toml_text import parse_toml

        return self._parsed("TOML", lambda: parse_toml(self.text, self.path)) if self.suffix == ".toml" else None

    @property
    def root(self) -> Node | None:
        """The first YAML document, or the TOML root."""
        return self.toml or (self.yaml[0] if self.yaml else None)

    @property
    def is_shell(self) -> bool:
        """Whether the file is a shell script, by its ending or its first line."""
        if self.suffix in SHELL:
            return True
        first = self.text[:200].partition("\n")[0]
        return first.startswith("#!") and any(shell in first for shell in ("sh", "srun"))

    @cached_property
    def commands(self) -> "tuple[Command, ...]":
        """The commands of a shell script; if it is damaged, those that can be read."""
        # Reading shell costs start-up time that other files should not pay.
        from rlaudit.configs.syntax.shell_text import commands

        def damaged(error: ValueError) -> None:
            self.refuse("a part of the shell script", error)

        return self._parsed("shell", lambda: commands(self.text, self.path, damaged=damaged)) if self.is_shell else ()

    def calls(self, names: Collection[str]) -> "tuple[Call, ...]":
        """Return the calls of any of `names` in a Python file."""
        wanted = frozenset(names)
        if self.suffix != ".py" or not any(name in self.text for name in wanted):
            return ()
        if wanted not in self._calls:
            from rlaudit.configs.syntax.python_calls import calls

            self._calls[wanted] = self._parsed(wanted, lambda: calls(self.text, self.path, wanted))
        return self._calls[wanted]

    def dictionaries(self, key: str) -> tuple[Node, ...]:
        """Return every dictionary of a Python file that has a key."""
        if self.suffix != ".py" or not re.search(rf"[\"']{re.escape(key)}[\"']\s*:", self.text):
            return ()
        from rlaudit.configs.syntax.python_calls import dictionaries

        return self._parsed(key, lambda: dictionaries(self.text, self.path, key))

    def refuse(self, part: object, error: ValueError | RecursionError) -> None:
        """Keep why a part of the file could not be read."""
        self.refusals.setdefault(part, error)

    def _parsed(self, syntax: object, parse: Callable[[], Parsed]) -> Parsed:
        """Return what `parse` returns. A syntax that failed is not parsed again."""
        if self.outside:
            raise ValueError(f"{self.path} is outside of the work tree")
        if syntax in self.refusals:
            raise self.refusals[syntax].with_traceback(None)
        try:
            return parse()
        except (ValueError, RecursionError) as error:
            self.refuse(syntax, error)
            raise

    def neighbour(self, relative: str) -> "Source | None":
        """Return a file beside this one (for `defaults:`), None if it is missing or too large."""
        return opened(Path(self.path).parent / relative, self.given, self.trees, self.pins)

    def above(self, relative: str) -> "Source | None":
        """Return the file at a path from this one's folder or one above it, up to the work tree's root."""
        folder, up = Path(self.path).absolute().parent, ""
        while is_inside(folder, self.trees):
            if self.neighbour(up + relative) is not None:
                path = Path(os.path.normpath(Path(self.path).parent / up / relative))
                return opened(path, self.given, self.trees, self.pins)
            if (folder / ".git").exists() or folder.parent == folder:
                return None
            folder, up = folder.parent, f"../{up}"
        return None

    def named_file(self, node: Node | None) -> "Source | None":
        """Return the file that a command names: below this file's folder, or beside it."""
        name = node.value if node is not None else None
        if not isinstance(name, str):
            return None
        return self.neighbour(name) or self.neighbour(Path(name).name)


def opened(path: Path, given: tuple[str, ...], trees: tuple[str, ...], pins: tuple[str, ...] = ()) -> Source | None:
    """Return a file that another one names, None if it is missing or too large.

    This is the only way to such a file: one that is in none of the trees comes back without having been opened.
    """
    try:
        status = path.stat()
        if not is_inside(path, trees):
            return Source(str(path), "", given, trees, outside=True)
        return _opened(str(path), given, trees, pins, (status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, ValueError):
        return None


# A config may inherit one file many times, and many configs one file.
@lru_cache(maxsize=64)
def _opened(
    path: str, given: tuple[str, ...], trees: tuple[str, ...], pins: tuple[str, ...], _state: tuple[int, int, int]
) -> Source:
    return Source(path, _text(path), given, trees, pins=pins)


def read_inside(path: Path, trees: tuple[str, ...]) -> str | None:
    """Return the text of a file that no report quotes; None if it is in none of the trees, or cannot be read."""
    try:
        return _text(path) if is_inside(path, trees) else None
    except (OSError, ValueError):
        return None


def _text(path: Path | str) -> str:
    # Bytes: reading text would turn \r\n into \n, and with it every offset of an edit.
    return read_regular(path, LARGEST_BYTES, "no config").decode("utf-8")
