"""What one vLLM release declares: engine arguments, flags, sampling parameters, variables, signatures.

One JSON file per release under data/, made by `python -m extract_catalogue` in .ci from the released sources.
What a release decides at start-up, where it declares None, is in resolve.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from rlaudit.errors import UsageError
from rlaudit.unknown import Unknown

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Declared:
    """One field as a release declares it.

    default: JSON data; Unknown if the declaration is an expression that only a running engine can evaluate, or if there
    is no default. choices: the words that are accepted, None if every value of the kind is. kind: the type as
    annotated. line: `vllm/engine/arg_utils.py:123`. config: for a nested config, the class whose defaults hold.
    """

    name: str
    default: Any
    choices: tuple[str, ...] | None
    kind: str
    line: str
    config: str = ""


@dataclass(frozen=True)
class Resolver:
    """The function of a release that decides a value: its fingerprint for review, and its line for notes."""

    fingerprint: str
    lines: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """One release.

    version: the catalogued release. asked: the requested version; `exact`: whether the two are the same. cli: every
    spelling of a flag without dashes in front (`enable-prefix-caching`, `no-enable-prefix-caching`, `tp`) -> engine
    argument or front-end name. nested: fields of config objects, `compilation_config.cudagraph_mode`. signatures:
    parameter names of the asynchronous engine's methods, and of `LLM.` methods. signature_defaults: their defaults.
    routes: HTTP routes of the API server, with the variable that must be set for the route to exist, else "".
    """

    version: Version
    asked: Version
    source: str
    engine: Mapping[str, Declared]
    frontend: Mapping[str, Declared]
    cli: Mapping[str, str]
    sampling: Mapping[str, Declared]
    variables: Mapping[str, Declared]
    nested: Mapping[str, Declared]
    signatures: Mapping[str, tuple[str, ...]]
    signature_defaults: Mapping[str, Mapping[str, Any]]
    routes: Mapping[str, str]
    resolvers: Mapping[str, Resolver]

    @property
    def exact(self) -> bool:
        """Whether the asked version itself is catalogued, and not only an older one."""
        return self.version == self.asked

    @property
    def said(self) -> str:
        """Return a sentence for the reader about a version that is not catalogued; empty for one that is."""
        if self.exact:
            return ""
        newest = known_versions()[-1]
        why = "newer than any release catalogued here" if self.asked > newest else "not catalogued"
        return f"vLLM {self.asked} is {why}: read as {self.version}, the nearest older release"

    @classmethod
    def at(cls, version: Version | str) -> "Catalogue":
        """Return the release, or the nearest older one that is catalogued.

        Raises UsageError for a text that is no version, and for one older than the oldest catalogued.
        """
        try:
            asked = Version(Version(str(version)).public)
        except InvalidVersion:
            raise UsageError(f"{version!r} is not a vLLM version", "Write a release such as 0.18.1.") from None
        older = [known for known in known_versions() if known <= asked]
        if not older:
            raise UsageError(
                f"vLLM {asked} is too old: the catalogue begins with {known_versions()[0]}",
                "`rlaudit list versions` prints the releases that are known.",
            )
        return _load(older[-1], asked)


@lru_cache(maxsize=1)
def known_versions() -> tuple[Version, ...]:
    """Return every catalogued release, oldest first."""
    return tuple(sorted(Version(path.stem) for path in DATA.glob("[0-9]*.json")))


@lru_cache(maxsize=8)
def _load(version: Version, asked: Version) -> Catalogue:
    data = json.loads((DATA / f"{version}.json").read_text(encoding="utf-8"))
    return Catalogue(
        version=version,
        asked=asked,
        source=data["source"],
        engine=_fields(data["engine"], data["files"]),
        frontend=_fields(data["frontend"], data["files"]),
        cli=data["cli"],
        sampling=_fields(data["sampling"], data["files"]),
        variables=_fields(data["variables"], data["files"]),
        nested=_fields(data["nested"], data["files"]),
        signatures={name: tuple(parameters) for name, parameters in data["signatures"].items()},
        signature_defaults=data["signatures"],
        routes=data["routes"],
        resolvers={name: Resolver(found[0], tuple(found[1:])) for name, found in data["resolvers"].items()},
    )


def _fields(rows: Mapping[str, list[Any]], files: list[str]) -> dict[str, Declared]:
    fields = {}
    for name, (stored, kind, line, *choices) in rows.items():
        file, number = line.split(":")
        default, config = _default(stored) if isinstance(stored, dict) else (stored, "")
        fields[name] = Declared(name, default, tuple(choices) or None, kind, f"{files[int(file)]}:{number}", config)
    return fields


def _default(stored: dict[str, Any]) -> tuple[Any, str]:
    match stored:
        case {"object": str(config)}:
            return Unknown(f"a {config} with the release's own defaults"), config
        case {"expression": str(text)}:
            return Unknown(f"decided when vLLM is imported: {text}"), ""
        case {"required": True}:
            return Unknown("there is no default"), ""
    return stored, ""


__all__ = ["Catalogue", "Declared", "Resolver", "known_versions"]
