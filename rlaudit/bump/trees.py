"""`--bump` in words: BASE..HEAD, BASE...HEAD, BASE alone against the files as they are, or an older folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlaudit.bump.tree import FolderTree, GitFailed, GitTree, Tree, git
from rlaudit.errors import NotFinished, UsageError

EXAMPLE = "rlaudit inspect --bump main...HEAD, or --bump OLD_FOLDER NEW_FOLDER"


@dataclass(frozen=True)
class Trees:
    """Before and after. paths: what of the tree after is to be inspected, from its root."""

    before: Tree
    after: Tree
    paths: tuple[str, ...]


def trees_named(bump: str, paths: Sequence[str]) -> Trees:
    """The two trees. Raises UsageError for what names none, NotFinished where a shallow clone lacks one."""
    if "-" in paths:
        raise UsageError("--bump inspects files of a tree: standard input is in none")
    if ".." not in bump.replace("../", "") and Path(bump).is_dir():
        return _folders(bump, paths)
    repository, below = _repository(paths)
    before, dots, after = bump.partition("...") if "..." in bump else bump.partition("..")
    first = _commit(repository, before or "HEAD")
    if not dots:
        return Trees(GitTree(repository, first, before), FolderTree(repository, "the files as they are"), below)
    last = _commit(repository, after or "HEAD")
    shown = before
    if dots == "...":
        first, shown = _fork(repository, first, last, bump), f"where {after or 'HEAD'} left {before or 'HEAD'}"
    return Trees(GitTree(repository, first, shown), GitTree(repository, last, after or "HEAD"), below)


def _folders(bump: str, paths: Sequence[str]) -> Trees:
    if len(paths) != 1 or not Path(paths[0]).is_dir():
        raise UsageError(f"--bump {bump} is a folder: name the folder to compare it with", EXAMPLE)
    return Trees(FolderTree(Path(bump), bump), FolderTree(Path(paths[0]), paths[0]), (".",))


def _repository(paths: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Its root, and the paths from there."""
    named = [Path(path).absolute() for path in paths] or [Path.cwd()]
    start = next((one for one in (named[0], *named[0].parents) if one.is_dir()), Path.cwd())
    try:
        if git(start, "rev-parse", "--is-bare-repository").strip() == b"true":
            return start, (".",)
        root = Path(git(start, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    except GitFailed as error:
        why = "git refuses it" if "dubious ownership" in str(error) else "no git repository"
        raise UsageError(f"{start}: {why}, and --bump compares revisions of one", EXAMPLE) from None
    try:
        return root, tuple(one.resolve().relative_to(root.resolve()).as_posix() for one in named) if paths else (".",)
    except ValueError:
        raise UsageError(f"the paths are not all in the repository {root}", EXAMPLE) from None


def _commit(repository: Path, name: str) -> str:
    try:
        return (
            git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            .decode()
            .strip()
        )
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


def _too_shallow(said: str) -> NotFinished:
    return NotFinished(said, "git fetch --unshallow; with actions/checkout: fetch-depth: 0")
