"""What programs can import from each release, and what the objects have that they get: modules, names, attributes.

One file for all releases, data/importable.json, made with the catalogue: most modules stay as they are for many
releases, and are said once. A name that no release has is not known here, which is no word against it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from packaging.version import Version

from rlaudit.vllm.catalogue import DATA, Catalogue, known_versions

FILE = "importable.json"
# Marks in a list of names: the module itself, a name that it only imports, one that an object has under a condition
# only, and that any name may be there.
ITSELF, HANDED_ON, SOMETIMES, ANYTHING = ".", "~", "?", "*"
# Modules that a wheel has and the sources have not: compiled ones, and copies of other projects.
COPIED_IN = ("vllm._C", "vllm._moe_C", "vllm._rocm_C", "vllm._flashmla", "vllm._qutlass_C", "vllm.cumem_allocator",
             "vllm.vllm_flash_attn", "vllm.third_party", "vllm._version", "vllm.commit_id")  # fmt: skip
MODELS = ("vllm.model_executor.models.", "vllm.models.")
_MOST_HOMES = 3


@dataclass(frozen=True)
class Gone:
    """What a release has not.

    name: a module (`vllm.worker.worker`), a name in it (`vllm.utils.Counter`), or an attribute (`LLM.set_tokenizer`).
    first, last: the releases that have it; None where no catalogued one has. homes: modules of the release that define
    something of that name.
    """

    name: str
    first: Version | None
    last: Version | None
    homes: tuple[str, ...] = ()

    def said(self, version: Version) -> str:
        """`0.10.2 was the last with it`."""
        if self.first is None:
            return f"no release from {known_versions()[0]} on has it"
        return f"it came with {self.first}" if version < self.first else f"{self.last} was the last with it"


@dataclass(frozen=True)
class Index:
    """The names of modules or objects, by release. spans: for each, lists of names by the releases that have them."""

    releases: tuple[Version, ...]
    spans: Mapping[str, Mapping[str, str]]

    def names(self, home: str, version: Version) -> frozenset[str]:
        """What a module or object has in a release; empty where the release has it not."""
        lists = self.spans.get(home, {}).items()
        return frozenset(name for span, names in lists if self._covers(span, version) for name in names.split())

    def lifetime(self, home: str, name: str) -> tuple[Version, Version] | None:
        """The first and the last release with a name."""
        marked = {name, HANDED_ON + name, SOMETIMES + name}
        found = [run for span, names in self.spans.get(home, {}).items() if not marked.isdisjoint(names.split())
                 for run in self._runs(span)]  # fmt: skip
        return (min(run[0] for run in found), max(run[1] for run in found)) if found else None

    def homes(self, name: str, version: Version) -> tuple[str, ...]:
        """The modules that define a name in a release, models left out; none where there are too many to tell."""
        worded = f" {name} "
        found = [
            home
            for home, lists in self.spans.items()
            if not home.startswith(MODELS)
            and any(worded in f" {names} " and self._covers(span, version) for span, names in lists.items())
        ]
        return tuple(found) if len(found) <= _MOST_HOMES else ()

    def _covers(self, span: str, version: Version) -> bool:
        return any(first <= version <= last for first, last in self._runs(span))

    def _runs(self, span: str) -> list[tuple[Version, Version]]:
        return _runs(span, self.releases)


@dataclass(frozen=True)
class Importable:
    """The two indexes."""

    modules: Index
    objects: Index


def gone_module(module: str, version: Version) -> Gone | None:
    """A module that a release has not; None where it has, or where the release itself is not catalogued."""
    index = _read().modules
    release = Catalogue.at(version)
    if ITSELF in index.names(module, release.version) or not release.exact or module.startswith(COPIED_IN):
        return None
    return Gone(module, *(index.lifetime(module, ITSELF) or (None, None)))


def is_module(path: str) -> bool:
    """Whether any release has a module of that path."""
    return ITSELF in {name for names in _read().modules.spans.get(path, {}).values() for name in names.split()}


def gone_name(module: str, name: str, version: Version) -> Gone | None:
    """A name that other releases have in a module, or as a module below it, and this one has not. Of the modules of
    models it is not known what they only import.
    """
    if module.startswith(MODELS):
        return None
    index = _read().modules
    at = Catalogue.at(version).version
    below = f"{module}.{name}"
    here = index.names(module, at)
    if not here.isdisjoint({name, HANDED_ON + name, ANYTHING}) or ITSELF in index.names(below, at):
        return None
    lifetimes = [one for one in (index.lifetime(module, name), index.lifetime(below, ITSELF)) if one is not None]
    if not lifetimes:
        return None
    homes = ("vllm",) if HANDED_ON + name in index.names("vllm", at) else index.homes(name, at)
    firsts, lasts = zip(*lifetimes, strict=True)
    return Gone(below, min(firsts), max(lasts), homes)


def gone_attribute(owner: str, attribute: str, version: Version) -> Gone | None:
    """An attribute that an object has in other releases and in this one has not, or under a condition only."""
    index = _read().objects
    here = index.names(owner, Catalogue.at(version).version)
    lifetime = index.lifetime(owner, attribute)
    if lifetime is None or not here or not here.isdisjoint({attribute, ANYTHING}):
        return None
    return Gone(f"{owner}.{attribute}", *lifetime)


def is_conditional(owner: str, attribute: str, version: Version) -> bool:
    """Whether an object has an attribute under a condition only."""
    return SOMETIMES + attribute in _read().objects.names(owner, Catalogue.at(version).version)


@lru_cache(maxsize=1)
def _read() -> Importable:
    stored = json.loads((DATA / FILE).read_text(encoding="utf-8"))
    releases = tuple(map(Version, stored["releases"]))
    return Importable(Index(releases, stored["modules"]), Index(releases, stored["objects"]))


@lru_cache(maxsize=2048)
def _runs(span: str, releases: tuple[Version, ...]) -> list[tuple[Version, Version]]:
    """`0.8.5..0.10.2,0.12.0..` as pairs; one without an end goes on to the newest."""
    ends = (run.split("..") for run in span.split(","))
    return [(Version(first), Version(last) if last else releases[-1]) for first, last in ends]


def spans(by_release: Mapping[Version, Mapping[str, Iterable[str]]]) -> dict[str, dict[str, str]]:
    """The lists to store: for each module or object, the names by the releases that have them."""
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


def _span(numbers: list[int], releases: list[Version]) -> str:
    starts = [one for one in numbers if one - 1 not in numbers]
    ends = [one for one in numbers if one + 1 not in numbers]
    newest = len(releases) - 1
    return ",".join(f"{releases[first]}..{'' if last == newest else releases[last]}"
                    for first, last in zip(starts, ends, strict=True))  # fmt: skip
