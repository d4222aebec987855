"""Find a framework's package: in a folder or an environment from the command line, else around the config."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlparse

from packaging.version import InvalidVersion, Version

from rlaudit.configs.source import Source, opened, read_inside
from rlaudit.errors import UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.files.work_tree import is_inside

_VERSIONS = ("version/version", "VERSION", "version.py", "_version.py", "__init__.py", "../VERSION", "../version.txt")
_ASSIGNED = re.compile(r"""^(?:__version__|version)\s*(?::\s*str\s*)?=\s*["']([^"']+)["']""", re.M)
_PROJECT = re.compile(r"""^\[project\][^\[]*?^version\s*=\s*["']([^"']+)["']""", re.M | re.S)
_NAMED = re.compile(r"""^\[project\][^\[]*?^name\s*=\s*["']([^"']+)["']""", re.M | re.S)
_SHORTEST = 40
_PACKAGES = (
    "lib/python*/site-packages",
    "lib64/python*/site-packages",
    "Lib/site-packages",
    "lib/python*/dist-packages",
)


@dataclass(frozen=True)
class Checkout:
    """A package on this machine."""

    # The folder around it.
    root: str
    package: str
    # In which its files may be read, as of Source.
    trees: tuple[str, ...]

    def file(self, relative: str) -> Source | None:
        """Return a file, relative to root; None if it is missing."""
        return _source(self.root, relative, self.trees)

    def has(self, path: str) -> bool:
        """Return whether a file is the package's own."""
        return _has(self.root, self.package, path)

    def says(self, pattern: str) -> bool:
        """Return whether any of the package's Python files matches a regular expression."""
        return _says(self.root, self.package, pattern, self.trees)

    @property
    def version(self) -> Version | None:
        """The release of the package; None if unknown."""
        return _version(self.root, self.package, self.trees)


def checkout_of(source: Source, package: str, *markers: str) -> Checkout | None:
    """Return the framework's source for a config. markers: files by which it differs from others of the same name."""
    for folder in source.given:
        root = _holds(Path(folder).absolute(), package, markers, source.trees)
        if root is not None:
            return Checkout(root, package, source.trees)
    root = _around(Path(source.path).absolute().parent, package, markers, source.trees)
    return Checkout(root, package, source.trees) if root is not None else None


def folders_of(python: str) -> tuple[str, ...]:
    """Return the folders with the packages of an environment. Raises UsageError if there are none.

    python: `bin/python` of the environment, or the environment itself.
    """
    path = Path(python)
    roots = [path] if path.is_dir() else [path.parent.parent, path.resolve().parent.parent] if path.is_file() else []
    folders = [folder for root in roots for pattern in _PACKAGES for folder in sorted(root.glob(pattern))]
    if not folders:
        raise UsageError(
            f"--python {python}: no environment with packages is there", "name bin/python of a virtual environment"
        )
    editable = (place for folder in folders for place in _editable(folder))
    return tuple(dict.fromkeys(str(folder) for folder in (*editable, *folders)))


def _editable(folder: Path) -> Iterator[Path]:
    """Yield the editable projects of an environment (`pip install -e`)."""
    for record in sorted(folder.glob("*.dist-info/direct_url.json")):
        try:
            project = parse_json(record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(project, dict) and (project.get("dir_info") or {}).get("editable"):
            yield Path(unquote(urlparse(str(project.get("url"))).path))


def is_there(path: Path) -> bool:
    """Return whether a path exists, also for a path that is too long for any file."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def shown(path: str) -> str:
    """Return a path for messages: relative to the working directory if it is below it."""
    return _shown(path, str(Path.cwd()))


@lru_cache(maxsize=4096)
def _shown(path: str, directory: str) -> str:
    absolute, folder = Path(directory, path), Path(directory)
    return str(absolute.relative_to(folder)) if absolute.is_relative_to(folder) else path


@lru_cache(maxsize=4096)
def _has(root: str, package: str, path: str) -> bool:
    return Path(path).absolute().is_relative_to(Path(root, package).absolute())


@lru_cache(maxsize=4096)
def _around(folder: Path, package: str, markers: tuple[str, ...], trees: tuple[str, ...]) -> str | None:
    """Find the package in this folder or one above it, up to the repository's root and the folders right below that."""
    root = _holds(folder, package, markers, trees)
    if root is not None or folder.parent == folder:
        return root
    if (folder / ".git").exists():
        below = (_holds(subfolder, package, markers, trees) for subfolder in _folders(folder))
        return next((root for root in below if root is not None), None)
    return _around(folder.parent, package, markers, trees)


def _folders(root: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(entry for entry in root.iterdir() if entry.is_dir()))
    except OSError:
        return ()


def _holds(folder: Path, package: str, markers: tuple[str, ...], trees: tuple[str, ...]) -> str | None:
    """Return the folder that holds the package: this one, its `src`, or the one above if this one is the package."""
    above = (folder.parent,) if folder.name == package else ()
    for place in (folder, folder / "src", folder / package, *above):
        if any(is_there(place / marker) and is_inside(place / marker, trees) for marker in markers):
            return str(place)
    return None


@lru_cache(maxsize=256)
def _source(root: str, relative: str, trees: tuple[str, ...]) -> Source | None:
    file = opened(Path(root, relative), (), trees)
    return None if file is None or file.outside else file


@lru_cache(maxsize=256)
def _says(root: str, package: str, pattern: str, trees: tuple[str, ...]) -> bool:
    return re.search(pattern, _whole(root, package, trees)) is not None


@lru_cache(maxsize=4)
def _whole(root: str, package: str, trees: tuple[str, ...]) -> str:
    """Return the text of all Python files of a package, whose parts may be projects of their own."""
    places = (package, f"src/{package}", f"packages/*/src/{package}")
    folders = [folder for place in places for folder in sorted(Path(root).glob(place))] or [Path(root)]
    return "\n".join(read_inside(path, trees) or "" for folder in folders for path in sorted(folder.rglob("*.py")))


@lru_cache(maxsize=64)
def _version(root: str, package: str, trees: tuple[str, ...]) -> Version | None:
    for info in sorted(Path(root).glob(f"{package.replace('-', '_')}-*.dist-info")):
        return _release_of(info.name.removesuffix(".dist-info").rpartition("-")[2])
    for relative in _VERSIONS:
        file = _source(root, f"{package}/{relative}", trees)
        if file is None:
            continue
        assigned = _ASSIGNED.search(file.text)
        text = assigned[1] if assigned is not None else file.text.strip()
        if len(text) < _SHORTEST and (version := _release_of(text)) is not None:
            return version
    for relative in ("pyproject.toml", "../pyproject.toml"):
        file = _source(root, relative, trees)
        project = _PROJECT.search(file.text) if file is not None else None
        name = _NAMED.search(file.text) if file is not None else None
        # A project with a copy of the package has another release.
        is_own = name is None or name[1].lower().replace("-", "_") == package.replace("-", "_")
        if project is not None and is_own:
            return _release_of(project[1])
    return None


def _release_of(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
