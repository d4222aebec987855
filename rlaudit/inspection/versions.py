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

from rlaudit.configs.framework_source.checkout import shown
from rlaudit.errors import UsageError
from rlaudit.vllm.catalogue import known_versions
from rlaudit.vllm.pins.files import PinnedIn, pinned_around
from rlaudit.vllm.pins.pin import VLLM, Pin, images, line_at, release, requirements, span

# Versions that an engine and its server print in a log.
_LOGGED = re.compile(r"(?:LLM engine \(v|vLLM API server version )(?P<version>\d+\.\d+[\w.+!-]*)")


@dataclass(frozen=True)
class Hint:
    """One version with the place that pins it."""

    version: Version
    # `uv.lock:812`
    where: str


@dataclass(frozen=True)
class Hints:
    """Versions around a file."""

    hints: tuple[Hint, ...] = ()
    # Sentences about pins that are not used.
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Versions:
    """The two sides of a migration."""

    before: Version
    after: Version
    # Sentences that tell people where the two come from.
    sentences: tuple[str, ...] = ()

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
    """Choose the versions for one file: those of the command line, else the project's.

    If both are on the command line and the project runs another, a sentence says so. recorded: the release that ran,
    which wins over everything around a recording.
    """
    hints = hints_for(path, text) if recorded is None else Hints((Hint(recorded, path),))
    oldest, newest = known_versions()[0], known_versions()[-1]
    usable = [hint for hint in hints.hints if hint.version >= oldest]
    if before is not None and after is not None:
        other = (hint for hint in usable[:1] if hint.version not in (before, after))
        remarks = [
            f"{hint.where} says vLLM {hint.version}, but the command line gives {before} -> {after}" for hint in other
        ]
        return Versions(before, after, tuple(remarks))
    too_old = (f"{hint.where} says vLLM {hint.version}" for hint in hints.hints if hint.version < oldest)
    remarks = [
        *hints.remarks,
        *(f"{pin}. This is older than the catalogue ({oldest}), so it was not used" for pin in too_old),
    ]
    if not usable:
        only = before or after
        if only is not None:
            remarks.append(
                f"only {only} was given, so no move is judged; add {'--from' if before is None else '--to'} VERSION"
            )
            return Versions(only, only, tuple(remarks))
        remarks.append(
            f"nothing says which vLLM runs, so rlaudit inspects for the newest known release, {newest}; "
            "give --from and --to"
        )
        return Versions(newest, newest, tuple(remarks))
    hint = usable[0]
    others = dict.fromkeys(f"{other.where} says {other.version}" for other in usable if other.version != hint.version)
    also = f" ({'; '.join(others)})" if others else ""
    side = "--from" if before is None else "--to"
    side = "--from and --to" if before is None and after is None else side
    remarks.append(f"{side} {hint.version}, read from {hint.where}{also}")
    return Versions(before or hint.version, after or hint.version, tuple(remarks))


def hints_for(path: str, text: str) -> Hints:
    """Return hints for one file: its own words first, then those of the folders above it, the nearest first."""
    written = _one_or_none([*images(text), *requirements(text), *_logged(text)], path)
    around = [_in_file(file) for file in pinned_around(Path(path).absolute().parent, VLLM)]
    hints = (hint for part in (written, *around) for hint in part.hints)
    return Hints(tuple(hints), tuple(remark for part in (written, *around) for remark in part.remarks))


@lru_cache(maxsize=4096)
def _in_file(file: PinnedIn) -> Hints:
    where = shown(str(file.path))
    hints = _one_or_none(file.pins, where)
    if hints.hints or hints.remarks or not file.kind.asks:
        return hints
    ranges = dict.fromkeys(pin.written for pin in file.pins if span(pin) is not None)
    return Hints(
        remarks=tuple(
            f"{where} allows a range of versions (vllm{bounds}), so rlaudit takes no vLLM version from it"
            for bounds in ranges
        )
    )


def _logged(text: str) -> Iterator[Pin]:
    for match in _LOGGED.finditer(text):
        yield Pin(match[0], release(match["version"]), line_at(text, match.start()))


def _one_or_none(pins: Sequence[Pin], where: str) -> Hints:
    exact = [(pin.version, pin.line) for pin in pins if pin.version is not None]
    versions = sorted({version for version, _ in exact})
    if len(versions) > 1:
        remark = f"{where} names several vLLM versions ({', '.join(map(str, versions))}), so rlaudit takes none of them"
        return Hints(remarks=(remark,))
    return Hints(tuple(Hint(version, f"{where}:{line}") for version, line in exact[:1]))
