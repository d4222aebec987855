"""Which release first had a name, and which one had it last: of arguments, flags, variables, nested keys."""

import json
from functools import lru_cache
from pathlib import Path

from packaging.version import Version

from rlaudit.vllm.catalogue import DATA

FILE = "lifetimes.json"
# kind -> section of a catalogue file
KINDS = {
    "engine": "engine",
    "flag": "cli",
    "frontend": "frontend",
    "sampling": "sampling",
    "variable": "variables",
    "nested": "nested",
    "method": "signatures",
    "route": "routes",
}


def lifetime(kind: str, name: str) -> tuple[Version, Version] | None:
    """The first and the last catalogued release with a name; None where no release has it."""
    found = _lifetimes().get(kind, {}).get(name)
    return (Version(found[0]), Version(found[1])) if found else None


def first_without(kind: str, name: str) -> Version | None:
    """The first catalogued release that no longer has a name; None where the newest has it, or none ever had."""
    from rlaudit.vllm.catalogue import known_versions

    found = lifetime(kind, name)
    return next((version for version in known_versions() if found is not None and version > found[1]), None)


def names(kind: str) -> tuple[str, ...]:
    """Every name of a kind that any release had."""
    return tuple(_lifetimes().get(kind, {}))


def write_lifetimes(folder: Path) -> None:
    """Make the index again from the catalogue files of a folder."""
    found: dict[str, dict[str, list[str]]] = {kind: {} for kind in KINDS}
    for version in sorted(Version(path.stem) for path in folder.glob("[0-9]*.json")):
        data = json.loads((folder / f"{version}.json").read_text(encoding="utf-8"))
        for kind, section in KINDS.items():
            for name in data[section]:
                found[kind].setdefault(name, [str(version), ""])[1] = str(version)
    lines = [
        f'"{kind}":{{\n'
        + ",\n".join(f"{json.dumps(name)}:{json.dumps(span)}" for name, span in sorted(spans.items()))
        + "\n}"
        for kind, spans in found.items()
    ]
    (folder / FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@lru_cache(maxsize=1)
def _lifetimes() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads((DATA / FILE).read_text(encoding="utf-8"))
    return found
