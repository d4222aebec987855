"""A repository at one moment: a revision of git, which is read from its objects, or a folder."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from rlaudit.configs.source import LARGEST_BYTES
from rlaudit.errors import NotFinished
from rlaudit.inspection.files import LEFT_OUT
from rlaudit.read_regular import read_regular

_LINK, _FILES = "120000", frozenset({"100644", "100755"})
_HIDDEN_AND_READ = frozenset({".github", ".gitlab-ci.yml"})


class Tree(Protocol):
    """shown: as the user named it. paths: of regular files, from the root, with forward slashes."""

    @property
    def shown(self) -> str: ...  # noqa: D102
    def paths(self) -> Sequence[str]: ...  # noqa: D102
    def read(self, paths: Sequence[str], most_bytes: int) -> Mapping[str, bytes]: ...  # noqa: D102


@dataclass(frozen=True)
class FolderTree:
    """A folder as it is. Virtual environments, packages and hidden entries are left out, workflows are not."""

    root: Path
    shown: str

    def paths(self) -> Sequence[str]:
        """Linked folders are not followed."""
        return sorted(self._walk())

    def _walk(self) -> Iterator[str]:
        for here, folders, files in os.walk(self.root):
            at_root = Path(here) == self.root
            if not at_root and "pyvenv.cfg" in files:
                folders.clear()
                continue
            folders[:] = [
                one for one in folders if one in _HIDDEN_AND_READ or not (one.startswith(".") or one in LEFT_OUT)
            ]
            for name in files:
                if not name.startswith(".") or name in _HIDDEN_AND_READ:
                    yield (Path(here) / name).relative_to(self.root).as_posix()

    def read(self, paths: Sequence[str], most_bytes: int) -> Mapping[str, bytes]:
        """The bytes of some files; what cannot be read is left out."""
        found = {}
        for path in paths:
            try:
                found[path] = read_regular(self.root / path, most_bytes, "no such file")
            except (OSError, ValueError):
                continue
        return found


@dataclass(frozen=True)
class GitTree:
    """A commit. Nothing is checked out, and no filter, hook or other program of the repository runs."""

    repository: Path
    commit: str
    shown: str

    def paths(self) -> Sequence[str]:
        """As git lists them; links and submodules are none."""
        return [path for mode, _, path in self._entries() if mode in _FILES]

    def read(self, paths: Sequence[str], most_bytes: int) -> Mapping[str, bytes]:
        """The bytes of some files; what is larger, or not in the object store, is left out."""
        wanted = set(paths)
        return dict(self._contents([one for one in self._entries() if one[2] in wanted], most_bytes))

    def lay_out(self, folder: Path) -> None:
        """Write every file that an inspection could read below `folder`, which becomes a repository's root for it."""
        (folder / ".git").mkdir()  # where searches for what stands above a config end
        entries = [one for one in self._entries() if _stays_inside(one[2])]
        for path, data in self._contents([one for one in entries if one[0] in _FILES], LARGEST_BYTES):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        links = [one for one in entries if one[0] == _LINK]
        for path, data in self._contents(links, LARGEST_BYTES):
            target = os.path.normpath(str(PurePosixPath(path).parent / os.fsdecode(data)))
            # A copy: a link could be led outside by another one.
            if _stays_inside(target) and (folder / target).is_file() and not (folder / path).exists():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / target, folder / path)

    def _entries(self) -> list[tuple[str, str, str]]:
        """Mode, object and path of all that is no folder."""
        listed = git(self.repository, "ls-tree", "-r", "-z", "--full-tree", self.commit)
        found = []
        for entry in listed.split(b"\0")[:-1]:
            about, _, path = entry.partition(b"\t")
            mode, _, identity = about.decode().split(" ")
            found.append((mode, identity, os.fsdecode(path)))
        return found

    def _contents(self, entries: Sequence[tuple[str, str, str]], most_bytes: int) -> Iterator[tuple[str, bytes]]:
        asked = "".join(f"{identity}\n" for _, identity, _ in entries).encode()
        sizes = git(self.repository, "cat-file", "--batch-check=%(objectsize)", given=asked).decode().splitlines()
        wanted = [
            entry for entry, size in zip(entries, sizes, strict=True) if size.isdecimal() and int(size) <= most_bytes
        ]
        asked = "".join(f"{identity}\n" for _, identity, _ in wanted).encode()
        data, at = git(self.repository, "cat-file", "--batch=%(objectsize)", given=asked), 0
        for _, _, path in wanted:
            end = data.index(b"\n", at)
            size = int(data[at:end])
            yield path, data[end + 1 : end + 1 + size]
            at = end + 1 + size + 1


def git(repository: Path, *words: str, given: bytes = b"") -> bytes:
    """What a git command prints. Raises GitFailed with git's own words, NotFinished where there is no git."""
    try:
        finished = subprocess.run(
            ["git", "-C", str(repository), *words],
            input=given,
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"},
        )
    except FileNotFoundError:
        raise NotFinished("git is not installed, which reads revisions", "give two folders instead") from None
    if finished.returncode:
        raise GitFailed(finished.stderr.decode(errors="replace").strip())
    return finished.stdout


class GitFailed(Exception):
    """git ended with an error."""


def _stays_inside(path: str) -> bool:
    """Whether a path of a tree, which anybody may have made, stays below the folder it is written to."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and not {"..", ".git"} & set(parts)
