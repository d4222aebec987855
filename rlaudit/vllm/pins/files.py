"""The kinds of file that pin packages, as one table, and the pins of the files around a config.

To add a kind, add a row: its files, the part of their text that counts, and the patterns that find a pin in it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from rlaudit.files.home import expanded
from rlaudit.files.read_regular import read_regular
from rlaudit.files.work_tree import is_inside, trees_of
from rlaudit.vllm.pins.pin import REQUIREMENTS, VLLM, Package, Pin, images, matches

LARGEST_BYTES = 20_000_000  # lock files of large projects have ten megabytes

_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")
_VARIABLE = re.compile(r"""^[ \t]*(?:ARG|ENV)[ \t]+(?P<name>\w+)[ =]["']?(?P<value>[\w.+-]+)["']?[ \t]*$""", re.M)
_USE = re.compile(r"\$\{?(?P<name>\w+)\}?")
_COMMAND = re.compile(r"(?:\\\n|[^\n])+")
_INSTALLS = re.compile(r"\b(?:install|uv add)\b")
# Two keys of one mapping, in either order: as deep as each other and nothing less deep between them.
_IMAGE_KEYS = re.compile(
    r"""^(?P<indent>[ ]*)(?P<first>repository|tag):[ ]*["']?(?P<value>[\w./:-]+)["']?[ ]*\n
    (?:(?P=indent)[ ]*(?!repository:|tag:)[^\n]*\n)*?
    (?P=indent)(?!(?P=first))(?:repository|tag):[ ]*["']?(?P<other>[\w./:-]+)["']?[ ]*$""",
    re.M | re.X,
)


def without_comments(text: str) -> str:
    """Put blanks over comments, which pin nothing: lines stay. A URL's `#` has no white space before it."""
    return _COMMENT.sub(lambda match: " " * len(match[0]), text)


def _with_variables(text: str) -> str:
    """Put the default of `ARG VLLM_VERSION=...` in the place of its uses; a build may give it another value."""
    code = without_comments(text)
    values = {match["name"]: match["value"] for match in _VARIABLE.finditer(code)}
    return _USE.sub(lambda use: values.get(use["name"], use[0]), code)


def _with_joined_images(text: str) -> str:
    """Put a Helm chart's repository before the tag beside it: `{repository: vllm/vllm-openai, tag: v0.18.1}`."""

    def joined(match: re.Match[str]) -> str:
        repository, tag = ("other", "value") if match["first"] == "tag" else ("value", "other")
        at = match.start(tag) - match.start()
        return f"{match[0][:at]}{match[repository]}:{match[0][at:]}"

    return _IMAGE_KEYS.sub(joined, without_comments(text))


def _installs(text: str) -> str:
    """Keep only the commands that install, which may take several lines: others may print or compare."""
    return _COMMAND.sub(
        lambda command: command[0] if _INSTALLS.search(command[0]) else re.sub(r"[^\n]", " ", command[0]),
        without_comments(text),
    )


@dataclass(frozen=True)
class PinFile:
    """A kind of file."""

    name: str
    # Of paths, read from their end, as `requirements/*.txt`.
    globs: tuple[str, ...]
    # What finds a pin: patterns of `pin.py`, with NAME for the package.
    patterns: tuple[str, ...]
    # Blanks out the text that does not count; lines stay.
    prepare: Callable[[str], str] = without_comments
    names_images: bool = False
    # Whether its ranges are requirements of the project and no part of something else.
    asks: bool = False

    @property
    def rank(self) -> int:
        """Return its place in the table: resolved versions first, then requirements, then what an image holds."""
        return KINDS.index(self)


KINDS = (
    PinFile(
        "lock file",
        ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "pylock.*.toml"),
        # One for each resolution: a fork of uv's lock file holds several.
        (r'^name = "NAME"\r?\n(?:marker[^\n]*\n)?version = "(?P<locked>[^"]+)"',),
        # Ten megabytes that a program writes, without comments.
        prepare=str,
    ),
    PinFile("Pipfile.lock", ("Pipfile.lock",), (r'"NAME":\s*\{[^{}]*"version":\s*"(?P<clauses>==[^"]+)"',), str),
    PinFile(
        "requirements",
        ("requirements*.txt", "requirements/*.txt", "*requirements.txt", "constraints*.txt", "requirements*.in"),
        REQUIREMENTS,
        asks=True,
    ),
    PinFile(
        "conda environment",
        ("environment*.yml", "environment*.yaml", "conda*.y*ml"),
        # conda's own spelling has one sign of equality.
        (r"^[ \t]*-[ \t]*(?:[\w-]+::)?NAME=(?P<clauses>\d[\w.]*)", *REQUIREMENTS),
    ),
    PinFile(
        "pyproject.toml",
        ("pyproject.toml",),
        (
            *REQUIREMENTS,
            # Poetry: `vllm = "0.9.1"`, and `vllm = {version = "0.9.1", extras = [...]}`; a caret is a range.
            r"""^NAME\s*=\s*(?:\{[^}\n]*?version\s*=\s*)?["'](?P<clauses>[\^~]?[<>=!]*\s*\d[^"']*)["']""",
            # uv's sources.
            r"""^NAME\s*=\s*\{[^}\n]*?git\s*=[^}\n]*?(?:rev|tag|branch)\s*=\s*["'](?P<revision>[^"']+)["']""",
        ),
        asks=True,
    ),
    PinFile("setup file", ("setup.py", "setup.cfg"), REQUIREMENTS, asks=True),
    PinFile(
        "Dockerfile",
        ("[Dd]ockerfile*", "*.[Dd]ockerfile", "Containerfile*"),
        REQUIREMENTS,
        prepare=_with_variables,
        names_images=True,
    ),
    PinFile(
        "manifest",
        ("values*.y*ml", "*compose*.y*ml", "k8s/**/*.y*ml"),
        (),
        prepare=_with_joined_images,
        names_images=True,
    ),
    PinFile("workflow", (".github/workflows/*.y*ml", ".gitlab-ci.yml"), REQUIREMENTS, names_images=True),
    PinFile("install script", ("*install*.sh", "*setup*.sh"), REQUIREMENTS, prepare=_installs),
)


def kind_of(path: str) -> PinFile | None:
    """Return the kind of a path, None for a file that pins nothing."""
    return next((kind for kind in KINDS if any(PurePath(path).match(glob) for glob in kind.globs)), None)


def pins_in(kind: PinFile, text: str, package: Package = VLLM) -> tuple[Pin, ...]:
    """Find the pins of one file, by line."""
    if not package.in_text(text):
        return ()
    relevant = kind.prepare(text)
    image_pins = images(relevant, package) if kind.names_images else ()
    return tuple(sorted([*image_pins, *matches(kind.patterns, relevant, package)], key=lambda pin: pin.line))


@dataclass(frozen=True)
class PinnedIn:
    """One file that may pin, and its pins of the package."""

    path: Path
    kind: PinFile
    pins: tuple[Pin, ...]

    @property
    def releases(self) -> tuple[Pin, ...]:
        """The releases that are pinned, the oldest first, each with its first pin."""
        exact = {pin.version: pin for pin in reversed(self.pins) if pin.version is not None}
        return tuple(exact[version] for version in sorted(exact))


@lru_cache(maxsize=4096)
def pinned_around(folder: Path, package: Package) -> tuple[PinnedIn, ...]:
    """Find the pins of a folder and those above it, up to the repository's root: the nearest folder first, and in one
    folder resolved versions before requirements. A link that leaves the work tree pins nothing.
    """
    trees = trees_of(str(folder))
    inside = ((kind, path) for kind, path in pin_files_in(folder) if is_inside(path, trees))
    pinned = tuple(PinnedIn(path, kind, pins_in(kind, text_of(path), package)) for kind, path in inside)
    return pinned if is_outermost(folder) else (*pinned, *pinned_around(folder.parent, package))


def is_outermost(folder: Path) -> bool:
    """Return whether nothing above a folder is of its project: the root of a repository, the user's home."""
    return (folder / ".git").exists() or folder.parent == folder or folder == expanded("~")


def text_of(path: Path) -> str:
    """Read a file of pins; "" if it cannot be read."""
    try:
        return read_regular(path, LARGEST_BYTES, "no list of packages").decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=4096)
def pin_files_in(folder: Path) -> tuple[tuple[PinFile, Path], ...]:
    """List what may pin something in one folder."""
    return tuple(
        (kind, path) for kind in KINDS for path in sorted({path for glob in kind.globs for path in folder.glob(glob)})
    )
