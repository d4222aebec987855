"""Names by the releases that have them, as the catalogue's files of all releases keep them.

`{home: {"0.8.5..0.10.2,0.12.0..": "name name"}}`: most names stay for many releases, and are written once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from packaging.version import Version

# Marks of a name that an object has under a condition only, and of an object that answers to any name.
SOMETIMES, ANYTHING = "?", "*"


@dataclass(frozen=True)
class Index:
    """The names of modules, objects or functions, by release."""

    releases: tuple[Version, ...]
    # For each home, lists of names by the releases that have them.
    spans: Mapping[str, Mapping[str, str]]

    def names(self, home: str, version: Version) -> frozenset[str]:
        """Return what a home has in a release; nothing if the release does not have it."""
        lists = self.spans.get(home, {}).items()
        return frozenset(name for span, names in lists if self._covers(span, version) for name in names.split())

    def _covers(self, span: str, version: Version) -> bool:
        return any(first <= version <= last for first, last in _runs(span, self.releases))


def spans(by_release: Mapping[Version, Mapping[str, Iterable[str]]]) -> dict[str, dict[str, str]]:
    """Return the lists to store: for each home, the names by the releases that have them."""
    releases = sorted(by_release)
    there: dict[str, dict[str, list[int]]] = {}
    for number, version in enumerate(releases):
        for home, names in by_release[version].items():
            for name in names:
                there.setdefault(home, {}).setdefault(name, []).append(number)
    lists: dict[str, dict[str, str]] = {}
    for home, names_there in sorted(there.items()):
        grouped: dict[str, list[str]] = {}
        for name, numbers in sorted(names_there.items()):
            grouped.setdefault(_span(numbers, releases), []).append(name)
        lists[home] = {span: " ".join(names) for span, names in sorted(grouped.items())}
    return lists


@lru_cache(maxsize=2048)
def _runs(span: str, releases: tuple[Version, ...]) -> list[tuple[Version, Version]]:
    """Return `0.8.5..0.10.2,0.12.0..` as pairs; one without an end goes on to the newest."""
    ends = (run.split("..") for run in span.split(","))
    return [(Version(first), Version(last) if last else releases[-1]) for first, last in ends]


def _span(numbers: list[int], releases: list[Version]) -> str:
    starts = [one for one in numbers if one - 1 not in numbers]
    ends = [one for one in numbers if one + 1 not in numbers]
    newest = len(releases) - 1
    pairs = zip(starts, ends, strict=True)
    return ",".join(f"{releases[first]}..{'' if last == newest else releases[last]}" for first, last in pairs)
