"""Which parts of a training are recorded in which vLLM release.

One file for all releases, data/hooks.json, made with the catalogue. It has the methods of PARTS with their parameters,
and of the objects that they are given the attributes that the recorder reads. None of these names is public: any
release may move one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from rlaudit.recording.shipped import rlaudit_recorder
from rlaudit.vllm.facts import DATA

FILE = "hooks.json"
ASYNC = "async"  # beside a method's parameters: it is a coroutine
RECORDER = Path(rlaudit_recorder.__file__)
PARTS: dict[str, tuple[str, ...]] = rlaudit_recorder.PARTS
WORKER_METHODS: tuple[str, ...] = tuple(rlaudit_recorder.WORKER_METHODS)
WORKER = "vllm.v1.worker.gpu_worker:Worker"


@dataclass(frozen=True)
class Index:
    """The names of modules, objects or functions, by release."""

    releases: tuple[Version, ...]
    # For each home, lists of names by the releases that have them: most names stay for many releases, and are written
    # once, `{"0.8.5..0.10.2,0.12.0..": "name name"}`.
    spans: Mapping[str, Mapping[str, str]]

    def names(self, home: str, version: Version) -> frozenset[str]:
        """Return what a home has in a release; nothing if the release does not have it."""
        lists = self.spans.get(home, {}).items()
        return frozenset(name for span, names in lists if self._covers(span, version) for name in names.split())

    def _covers(self, span: str, version: Version) -> bool:
        return any(first <= version <= last for first, last in _runs(span, self.releases))


@dataclass(frozen=True)
class HookPoints:
    """What the recorder hooks and reads in each release."""

    # The methods of PARTS, as `module:Class.method`.
    hooks: Index
    # The classes that are read, as `module:Class`.
    objects: Index

    @property
    def releases(self) -> tuple[Version, ...]:
        """The releases that were read, oldest first."""
        return self.hooks.releases

    def found(self, part: str, release: Version) -> tuple[str, ...]:
        """Return the methods that show a part in a release; none if it is not recorded there."""
        return tuple(target for target in PARTS[part] if self.hooks.names(target, release))


def where_recorded(points: HookPoints | None = None) -> str:
    """Return a table of the parts, and of the calls inside a worker, with the releases that they are recorded in."""
    points = points or hook_points()
    rows = {part: [bool(points.found(part, release)) for release in points.releases] for part in PARTS}
    workers = {release: points.objects.names(WORKER, release) for release in points.releases}
    for method in WORKER_METHODS:
        rows[f"a worker's {method}"] = [method in workers[release] for release in points.releases]
    width = max(map(len, rows)) + 2
    lines = [f"  {name:<{width}}{_in_words(flags, points.releases)}" for name, flags in rows.items()]
    return "\n".join([f"Recorded, of vLLM {points.releases[0]} to {points.releases[-1]}:", *lines])


@lru_cache(maxsize=1)
def hook_points() -> HookPoints:
    """Return what the catalogue says of all releases."""
    return read_hook_points(DATA)


def read_hook_points(folder: Path) -> HookPoints:
    """Return what a folder with the catalogue's files says of all releases."""
    stored = json.loads((folder / FILE).read_text(encoding="utf-8"))
    releases = tuple(map(Version, stored["releases"]))
    return HookPoints(Index(releases, stored["hooks"]), Index(releases, stored["objects"]))


def _in_words(flags: list[bool], releases: tuple[Version, ...]) -> str:
    """Return `all`, `0.12.0 and later`, `0.8.5 to 0.10.2`, or `none`."""
    if all(flags):
        return "all"
    runs: list[list[Version]] = []
    for at, (has, release) in enumerate(zip(flags, releases, strict=True)):
        if has and (at == 0 or not flags[at - 1]):
            runs.append([release])
        if has:
            runs[-1][1:] = [release]
    spans = (f"{run[0]} and later" if run[-1] == releases[-1] else f"{run[0]} to {run[-1]}" for run in runs)
    return ", ".join(spans) or "none"


@lru_cache(maxsize=2048)
def _runs(span: str, releases: tuple[Version, ...]) -> list[tuple[Version, Version]]:
    """Return `0.8.5..0.10.2,0.12.0..` as pairs; one without an end goes on to the newest."""
    ends = (run.split("..") for run in span.split(","))
    return [(Version(first), Version(last) if last else releases[-1]) for first, last in ends]
