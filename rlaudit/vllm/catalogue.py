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
    """One field as a release declares it."""

    name: str
    # JSON data; Unknown if it is missing, or an expression that only a running engine can evaluate.
    default: Any
    # The accepted words, None if every value of the kind is accepted.
    choices: tuple[str, ...] | None
    # The type as annotated.
    kind: str
    # `vllm/engine/arg_utils.py:123`.
    line: str
    # For a nested config, the class whose defaults hold.
    config: str = ""


@dataclass(frozen=True)
class Resolver:
    """The function of a release that decides a value."""

    # For review.
    fingerprint: str
    # For notes: the first line of each function's decision.
    lines: tuple[str, ...]
    # What is assigned where, as far as it is written there.
    assigned: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Catalogue:
    """One release."""

    # The catalogued release.
    version: Version
    # The requested version.
    asked: Version
    source: str
    engine: Mapping[str, Declared]
    frontend: Mapping[str, Declared]
    # A flag without leading dashes (`enable-prefix-caching`, `no-enable-prefix-caching`, `tp`) -> engine argument or
    # front-end name.
    cli: Mapping[str, str]
    sampling: Mapping[str, Declared]
    variables: Mapping[str, Declared]
    # Fields of config objects, `compilation_config.cudagraph_mode`.
    nested: Mapping[str, Declared]
    # Parameter names of the asynchronous engine's methods, and of `LLM.` methods.
    signatures: Mapping[str, tuple[str, ...]]
    # The defaults of these parameters.
    signature_defaults: Mapping[str, Mapping[str, Any]]
    # HTTP routes of the API server -> the variable that must be set for the route to exist, else "".
    routes: Mapping[str, str]
    resolvers: Mapping[str, Resolver]

    @property
    def exact(self) -> bool:
        """Whether the requested version itself is catalogued, and not only an older one."""
        return self.version == self.asked

    @property
    def remark(self) -> str:
        """A sentence for the reader if the requested version is not catalogued, else empty."""
        if self.exact:
            return ""
        newest = known_versions()[-1]
        why = "newer than any release catalogued here" if self.asked > newest else "not catalogued"
        return f"vLLM {self.asked} is {why}: read as {self.version}, the nearest older release"

    @classmethod
    def at(cls, version: Version | str) -> "Catalogue":
        """Return the release, or the nearest older one that is catalogued.

        Raises UsageError for a text that is no version, and for a version older than all catalogued ones.
        """
        try:
            requested = Version(Version(str(version)).public)
        except InvalidVersion:
            raise UsageError(f"{version!r} is not a vLLM version", "Write a release such as 0.18.1.") from None
        older = [release for release in known_versions() if release <= requested]
        if not older:
            raise UsageError(
                f"vLLM {requested} is too old: the catalogue begins with {known_versions()[0]}",
                "`rlaudit list versions` prints the releases that are known.",
            )
        return _load(older[-1], requested)


@lru_cache(maxsize=1)
def known_versions() -> tuple[Version, ...]:
    """Return every catalogued release, oldest first."""
    return tuple(sorted(Version(path.stem) for path in DATA.glob("[0-9]*.json")))


def _resolver(fingerprint: str, *lines: str) -> Resolver:
    parts = [line.partition("=") for line in lines]
    assigned = tuple((line, value) for line, sign, value in parts if sign)
    return Resolver(fingerprint, tuple(line for line, sign, _ in parts if not sign), assigned)


@lru_cache(maxsize=8)
def _load(version: Version, requested: Version) -> Catalogue:
    data = json.loads((DATA / f"{version}.json").read_text(encoding="utf-8"))
    return Catalogue(
        version=version,
        asked=requested,
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
        resolvers={name: _resolver(*texts) for name, texts in data["resolvers"].items()},
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
            return Unknown(f"nothing sets it, so the release fills in a {config} when it starts"), config
        case {"expression": str(text)}:
            return Unknown(f"decided when vLLM is imported: {text}"), ""
        case {"required": True}:
            return Unknown("it has no default: set it"), ""
    return stored, ""


__all__ = ["Catalogue", "Declared", "Resolver", "known_versions"]
