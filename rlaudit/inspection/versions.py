"""From which vLLM to which: as the command line says, else as the project pins it, else to the newest known.

A project's pins are around the config: in lock files, requirements, pyproject.toml, image tags. Only exact versions
count; a range, or several versions in one file, is reported and not guessed at.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from rlaudit.errors import UsageError
from rlaudit.pins.files import PinnedIn, pinned_around
from rlaudit.pins.pin import VLLM, Pin, images, line_at, release, requirements, span
from rlaudit.vllm.catalogue import known_versions

# Versions that an engine and its server print in a log.
_LOGGED = re.compile(r"(?:LLM engine \(v|vLLM API server version )(?P<version>\d+\.\d+[\w.+!-]*)")


@dataclass(frozen=True)
class Hint:
    """One version and who says so: `uv.lock:812`."""

    version: Version
    where: str


@dataclass(frozen=True)
class Hints:
    """What is known. remarks: sentences about what was found and not used."""

    hints: tuple[Hint, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Versions:
    """The two sides. said: where they come from, in sentences, for people."""

    before: Version
    after: Version
    said: tuple[str, ...] = ()

    @property
    def migrates(self) -> bool:
        """Whether there are two versions."""
        return self.before != self.after


def version_named(text: str) -> Version:
    """Return a version as written on the command line. Raises UsageError."""
    try:
        version = Version(Version(text.removeprefix("v")).public)
    except InvalidVersion:
        raise UsageError(f"{text!r} is not a vLLM version", "write a release such as 0.18.1") from None
    if version < known_versions()[0]:
        raise UsageError(
            f"vLLM {version} is too old: the catalogue begins with {known_versions()[0]}", "see: rlaudit list versions"
        )
    return version


def choose(
    before: Version | None, after: Version | None, path: str, text: str, recorded: Version | None = None
) -> Versions:
    """Choose the versions for one file. A version on the command line wins; the project's own fills in the other side.
    If both are on the command line and the project runs another, a sentence says so.

    recorded: the release that ran, which wins over everything around a recording.
    """
    found = hints_for(path, text) if recorded is None else Hints((Hint(recorded, path),))
    if before is not None and after is not None:
        catalogued = [one for one in found.hints if one.version >= known_versions()[0]]
        other = (one for one in catalogued[:1] if one.version not in (before, after))
        said = [f"{one.where} says vLLM {one.version}; it is read from {before} on all the same" for one in other]
        return Versions(before, after, tuple(said))
    oldest, newest = known_versions()[0], known_versions()[-1]
    said = list(found.remarks)
    usable = []
    for one in found.hints:
        if one.version < oldest:
            said.append(f"{one.where} says vLLM {one.version}, older than the catalogue ({oldest}): not used")
        else:
            usable.append(one)
    if not usable:
        only = before or after
        if only is not None:
            said.append(f"vLLM {only} alone: nothing says what else was or will be run, so nothing migrates")
            return Versions(only, only, tuple(said))
        said.append(f"nothing says which vLLM runs: inspected at the newest known, {newest}; give --from and --to")
        return Versions(newest, newest, tuple(said))
    hint = usable[0]
    others = dict.fromkeys(f"{other.where} says {other.version}" for other in usable if other.version != hint.version)
    also = f" ({'; '.join(others)})" if others else ""
    side = "--from" if before is None else "--to"
    side = "--from and --to" if before is None and after is None else side
    said.append(f"{side} {hint.version} from {hint.where}{also}")
    return Versions(before or hint.version, after or hint.version, tuple(said))


def hints_for(path: str, text: str) -> Hints:
    """Hints for one file: its own words first, then the folders above it, the nearest first."""
    own = _one_or_none([*images(text), *requirements(text), *_logged(text)], path)
    around = _around(Path(path).absolute().parent)
    return Hints((*own.hints, *around.hints), (*own.remarks, *around.remarks))


def _around(folder: Path) -> Hints:
    """Hints in a folder and those above it, up to the repository's root."""
    found = [_in_file(one) for one in pinned_around(folder, VLLM)]
    return Hints(
        tuple(hint for one in found for hint in one.hints), tuple(said for one in found for said in one.remarks)
    )


@lru_cache(maxsize=4096)
def _in_file(found: PinnedIn) -> Hints:
    where = _shown(found.path)
    said = _one_or_none(found.pins, where)
    if said.hints or said.remarks or not found.kind.asks:
        return said
    ranges = dict.fromkeys(pin.written for pin in found.pins if span(pin) is not None)
    return Hints(remarks=tuple(f"{where} asks for vllm{one}: not one version" for one in ranges))


def _logged(text: str) -> Iterator[Pin]:
    for match in _LOGGED.finditer(text):
        yield Pin(match[0], release(match["version"]), line_at(text, match.start()))


def _one_or_none(pins: Sequence[Pin], where: str) -> Hints:
    exact = [(pin.version, pin.line) for pin in pins if pin.version is not None]
    versions = sorted({version for version, _ in exact})
    if len(versions) > 1:
        said = f"{where} names several vLLM versions ({', '.join(map(str, versions))}): none is taken from it"
        return Hints(remarks=(said,))
    return Hints(tuple(Hint(version, f"{where}:{line}") for version, line in exact[:1]))


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
