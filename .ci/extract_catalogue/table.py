"""Writes releases into the catalogue's table, where a fact that does not change stands once."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from packaging.version import Version

from rlaudit.vllm.facts import FACTS, FIELDS, KINDS, LINES, ORDER, RELEASES, RESOLVERS, Facts

# Kind -> name -> value, as `rlaudit.vllm.facts.Facts.of` returns each kind.
OfRelease = Mapping[str, Mapping[str, Any]]
ByRelease = dict[str, OfRelease]


def write_release(release: str, source: str, found: OfRelease, folder: Path) -> None:
    """Add a release to a folder's table, or write it anew. source: the file that was read."""
    sources, by_release = read_table(folder)
    write_table({**sources, release: source}, {**by_release, release: found}, folder)


def read_table(folder: Path) -> tuple[dict[str, str], ByRelease]:
    """Return the read file, and the facts, of every release of a folder."""
    known = Facts(folder)
    found: ByRelease = {release: {kind: known.of(kind, release) for kind in KINDS} for release in known.releases}
    return dict(known.releases), found


def write_table(sources: Mapping[str, str], by_release: Mapping[str, OfRelease], folder: Path) -> None:
    """Write releases with what each has: a fact a line, and a line for each time that it changed."""
    ordered = sorted(sources, key=Version)
    (folder / FACTS).mkdir(parents=True, exist_ok=True)
    parted = [(release, *_parted(by_release[release])) for release in ordered]
    histories = {kind: _histories(kind, [(release, facts) for release, facts, _ in parted]) for kind in KINDS}
    lines = {release: dict(moved) for release, moved in _moved([(release, numbers) for release, _, numbers in parted])}
    _write(folder / RELEASES, _lines_of({release: _text(sources[release]) for release in ordered}))
    for kind, named in histories.items():
        _write(folder / FACTS / f"{kind}.json", _lines_of(named))
    _write(folder / LINES, _lines_of({release: _lines_of(moved) for release, moved in lines.items()}))


def _parted(found: OfRelease) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the facts of a release without line numbers and order, and these by their place in lines.json."""
    facts = {kind: dict(sorted(found[kind].items())) for kind in KINDS}
    ranks = {name: str(rank) for rank, name in enumerate(facts["engine"])}
    numbers = {ORDER: [ranks[name] for name in found["engine"]]}
    for kind in FIELDS:
        for name, (default, annotation, place, *words) in facts[kind].items():
            file, _, number = place.partition(":")
            facts[kind][name] = [default, annotation, file, *words]
            numbers.setdefault(f"{kind} {file}", []).append(number)
    for name, (fingerprint, *places) in facts[RESOLVERS].items():
        numbers[f"{RESOLVERS} {name}"] = [place.partition(":")[2].partition("=")[0] for place in places]
        facts[RESOLVERS][name] = [fingerprint, *map(_without_number, places)]
    return facts, {place: " ".join(of_place) for place, of_place in sorted(numbers.items())}


def _without_number(place: str) -> str:
    file, _, rest = place.partition(":")
    _, sign, value = rest.partition("=")
    return f"{file}{sign}{value}"


def _histories(kind: str, by_release: Iterable[tuple[str, dict[str, dict[str, Any]]]]) -> dict[str, str]:
    """Return by name the text of `[[since, value], ...]`."""
    found: dict[str, list[tuple[str, str]]] = {}
    for release, facts in by_release:
        for name in sorted({*found, *facts[kind]}):
            # As text: in Python 0, 0.0 and False are equal.
            value = _text(facts[kind].get(name))
            history = found.setdefault(name, [])
            if not history or history[-1][1] != value:
                history.append((release, value))
    return {
        name: "[" + ",\n ".join(f"[{_text(since)},{value}]" for since, value in history) + "]"
        for name, history in sorted(found.items())
    }


def _moved(by_release: list[tuple[str, dict[str, str]]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield for each release the line numbers that are not those of the release before it."""
    for (_, before), (release, numbers) in pairwise([("", {}), *by_release]):
        yield release, {place: _text(text) for place, text in numbers.items() if before.get(place) != text}


def _lines_of(entries: Mapping[str, str]) -> str:
    return "{\n" + ",\n".join(f"{_text(name)}:{text}" for name, text in entries.items()) + "\n}" if entries else "{}"


def _write(path: Path, text: str) -> None:
    path.write_text(f"{text}\n", encoding="utf-8")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
