"""The two trees that a bump compares: each is a git revision, read from git's objects, or a folder.

`--bump` names them: BASE..HEAD, BASE...HEAD, BASE alone against the files as they are, or an older folder.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from rlaudit.errors import NotFinished, UsageError

_FILES = frozenset({"100644", "100755"})
# Mode, object and path of a file in git.
_Entry = tuple[str, str, str]


@dataclass(frozen=True)
class Tree:
    """A folder as it is, or a commit of the repository in it.

    Nothing is checked out, and no filter, hook or other program of the repository runs.
    """

    # As the user named it.
    shown: str
    root: Path
    # Empty for the files as they are.
    commit: str = ""

    @contextmanager
    def laid_out(self, wanted: Callable[[str], bool], most_bytes: int) -> Iterator[Path]:
        """Yield the folder; for a commit a temporary one, which counts as a repository's root.

        wanted: whether a file is laid out, by its path. most_bytes: larger files are left out.
        """
        if not self.commit:
            yield self.root
            return
        with TemporaryDirectory(prefix="rlaudit-bump-") as folder:
            self._lay_out(Path(folder), wanted, most_bytes)
            yield Path(folder)

    def _lay_out(self, folder: Path, wanted: Callable[[str], bool], most_bytes: int) -> None:
        (folder / ".git").mkdir()  # Searches in the folders above a config end here.
        # Links are left out: they may lead anywhere.
        inside = (entry for entry in self._entries() if entry[0] in _FILES and _stays_inside(entry[2]))
        for path, data in self._contents([entry for entry in inside if wanted(entry[2])], most_bytes):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

    def _entries(self) -> Iterator[_Entry]:
        """Yield every file and link of the commit."""
        for entry in git(self.root, "ls-tree", "-r", "-z", "--full-tree", self.commit).split(b"\0")[:-1]:
            about, _, path = entry.partition(b"\t")
            mode, _, identity = about.decode().split(" ")
            yield mode, identity, os.fsdecode(path)

    def _contents(self, entries: Sequence[_Entry], most_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of files by their paths, without files that are larger or not in the object store."""
        names = "".join(f"{name}\n" for _, name, _ in entries).encode()
        sizes = git(self.root, "cat-file", "--batch-check=%(objectsize)", given=names).decode().splitlines()
        sized = zip(entries, sizes, strict=True)
        kept = [entry for entry, size in sized if size.isdecimal() and int(size) <= most_bytes]
        names = "".join(f"{name}\n" for _, name, _ in kept).encode()
        data, at = git(self.root, "cat-file", "--batch=%(objectsize)", given=names), 0
        for _, _, path in kept:
            end = data.index(b"\n", at)
            size = int(data[at:end])
            yield path, data[end + 1 : end + 1 + size]
            at = end + 1 + size + 1


def git(repository: Path, *words: str, given: bytes = b"") -> bytes:
    """Return what a git command prints. Raises GitFailed with git's own words, NotFinished if git is not installed."""
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
    """Return whether an untrusted path of a tree stays below the folder that it is written to."""
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and not {"..", ".git"} & set(parts)


EXAMPLE = "rlaudit inspect --bump main...HEAD, or --bump OLD_FOLDER NEW_FOLDER"


@dataclass(frozen=True)
class Trees:
    """The two trees of a bump."""

    before: Tree
    after: Tree
    # The parts of the tree after that are inspected, from its root.
    paths: tuple[str, ...]


def trees_named(bump: str, paths: Sequence[str]) -> Trees:
    """Find the two trees. Raises UsageError if a name is none, NotFinished if a shallow clone lacks one."""
    if "-" in paths:
        raise UsageError("--bump inspects files of a tree: standard input is in none")
    if ".." not in bump.replace("../", "") and Path(bump).is_dir():
        return _folders(bump, paths)
    repository, below = _repository(paths)
    before, dots, after = bump.partition("...") if "..." in bump else bump.partition("..")
    first = _commit(repository, before or "HEAD")
    if not dots:
        return Trees(Tree(before, repository, first), Tree("the files as they are", repository), below)
    last = _commit(repository, after or "HEAD")
    shown = before
    if dots == "...":
        first, shown = _fork(repository, first, last, bump), f"where {after or 'HEAD'} left {before or 'HEAD'}"
    return Trees(Tree(shown, repository, first), Tree(after or "HEAD", repository, last), below)


def _folders(bump: str, paths: Sequence[str]) -> Trees:
    if len(paths) != 1 or not Path(paths[0]).is_dir():
        raise UsageError(f"--bump {bump} is a folder: name the folder to compare it with", EXAMPLE)
    return Trees(Tree(bump, Path(bump)), Tree(paths[0], Path(paths[0])), (".",))


def _repository(paths: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Return the repository's root, and the paths from there."""
    named = [Path(path).absolute() for path in paths] or [Path.cwd()]
    start = next((folder for folder in (named[0], *named[0].parents) if folder.is_dir()), Path.cwd())
    try:
        if git(start, "rev-parse", "--is-bare-repository").strip() == b"true":
            return start, (".",)
        root = Path(git(start, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    except GitFailed as error:
        why = "git refuses it" if "dubious ownership" in str(error) else "no git repository"
        raise UsageError(f"{start}: {why}, and --bump compares revisions of one", EXAMPLE) from None
    try:
        return root, tuple(path.resolve().relative_to(root.resolve()).as_posix() for path in named) if paths else (".",)
    except ValueError:
        raise UsageError(f"the paths are not all in the repository {root}", EXAMPLE) from None


def _commit(repository: Path, name: str) -> str:
    try:
        revision = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return git(repository, "rev-parse", *revision).decode().strip()
    except GitFailed:
        if _shallow(repository):
            raise _too_shallow(f"{name} is not in this shallow clone") from None
        raise UsageError(f"{name!r} is no revision of {repository}", EXAMPLE) from None


def _fork(repository: Path, first: str, last: str, bump: str) -> str:
    try:
        return git(repository, "merge-base", first, last).decode().strip()
    except GitFailed:
        if _shallow(repository):
            raise _too_shallow(f"where the two sides of {bump} parted is not in this shallow clone") from None
        raise UsageError(
            f"the two sides of {bump} have no commit in common", "two dots compare them as they are"
        ) from None


def _shallow(repository: Path) -> bool:
    return git(repository, "rev-parse", "--is-shallow-repository").strip() == b"true"


def _too_shallow(problem: str) -> NotFinished:
    return NotFinished(problem, "git fetch --unshallow; with actions/checkout: fetch-depth: 0")
