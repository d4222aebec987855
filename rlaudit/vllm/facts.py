"""Each fact about the catalogued releases once, with the release since which it holds.

Files under data/, made by `python -m extract_catalogue` in .ci from the released sources: releases.json has every
release, oldest first, with the file that was read. facts/ has a file for each kind, by name `[[since, value], ...]`,
with null once the name is gone. lines.json has what moves with every release and that no person reads, line numbers and
order: a release's entries are those that differ from the release before it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
RELEASES, FACTS, LINES = "releases.json", "facts", "lines.json"
# Kinds whose values are fields: [default, type, file and line, *accepted words].
FIELDS = ("engine", "frontend", "sampling", "variables", "nested")
# Kind whose values are [fingerprint, *(file and line, or file and line=value)].
RESOLVERS = "resolvers"
# Place in lines.json. Reports list what vLLM decides as the release declares it, related arguments side by side.
ORDER = "engine order"
KINDS = (*FIELDS, "cli", "signatures", "routes", RESOLVERS)

# Of [since, value].
History = list[list[Any]]


@dataclass(frozen=True)
class Facts:
    """What a folder has of all releases; nothing if its files are missing."""

    folder: Path
    _read: dict[str, Mapping[str, History]] = field(default_factory=dict)

    @cached_property
    def releases(self) -> Mapping[str, str]:
        """Every release, oldest first, with the file that was read."""
        return _json(self.folder / RELEASES)

    @cached_property
    def lines(self) -> Mapping[str, Mapping[str, str]]:
        """By release and place what differs from the release before it.

        A place is kind and file, or `resolvers` and rule: the line numbers in the order of the facts that have them; or
        ORDER: for each argument in the order of its declaration, its rank by name.
        """
        return _json(self.folder / LINES)

    def histories(self, kind: str) -> Mapping[str, History]:
        """Return by name [[since, value], ...], oldest first. A kind is read when it is needed."""
        if kind not in self._read:
            self._read[kind] = _json(self.folder / FACTS / f"{kind}.json")
        return self._read[kind]

    def of(self, kind: str, release: str) -> dict[str, Any]:
        """Return the facts of one kind that a release has, by name."""
        values, numbers = self._values(kind, release), self._numbers(release)
        if kind == RESOLVERS:
            return {
                name: [fingerprint, *_numbered(places, numbers[f"{RESOLVERS} {name}"])]
                for name, (fingerprint, *places) in values.items()
            }
        fields = _with_lines(kind, values, numbers) if kind in FIELDS else values
        if kind == "engine":
            names = list(fields)
            return {names[int(rank)]: fields[names[int(rank)]] for rank in numbers[ORDER].split()}
        return fields

    def accepted_words(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each field of any release with the words that it accepts, as often as they changed."""
        for kind in FIELDS:
            for name, history in self.histories(kind).items():
                yield from ((name, words) for _, value in history if value is not None for _, _, _, *words in [value])

    def lifetime(self, kind: str, name: str) -> tuple[str, str] | None:
        """Return the first and the last release with a name; None if no release has it."""
        history = self.histories(kind).get(name)
        if history is None:
            return None
        since, value = history[-1]
        releases = list(self.releases)
        return history[0][0], releases[-1] if value is not None else releases[self._rank[since] - 1]

    @cached_property
    def _rank(self) -> dict[str, int]:
        return {release: rank for rank, release in enumerate(self.releases)}

    def _values(self, kind: str, release: str) -> dict[str, Any]:
        rank, here = self._rank, self._rank[release]
        values = {}
        for name, history in self.histories(kind).items():
            for since, value in reversed(history):
                if rank[since] <= here:
                    if value is not None:
                        values[name] = value
                    break
        return values

    def _numbers(self, release: str) -> dict[str, str]:
        numbers: dict[str, str] = {}
        for known in self.releases:
            numbers.update(self.lines[known])
            if known == release:
                break
        return numbers


def _with_lines(kind: str, rows: Mapping[str, Any], numbers: Mapping[str, str]) -> dict[str, Any]:
    """Return fields with `file:12` in place of the file; the numbers of a file stand in the order of the fields."""
    of_file: dict[str, Iterator[str]] = {}
    fields = {}
    for name, (default, annotation, file, *words) in rows.items():
        if file not in of_file:
            of_file[file] = iter(numbers[f"{kind} {file}"].split())
        fields[name] = [default, annotation, f"{file}:{next(of_file[file])}", *words]
    return fields


def _numbered(places: Iterable[str], numbers: str) -> list[str]:
    """Return `file:12=value` for `file=value` and the number 12."""
    parted = (place.partition("=") for place in places)
    return [
        f"{file}:{number}{sign}{value}" for (file, sign, value), number in zip(parted, numbers.split(), strict=True)
    ]


@lru_cache(maxsize=1)
def facts() -> Facts:
    """Return what the package knows of all releases."""
    return Facts(DATA)


def _json(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return data
