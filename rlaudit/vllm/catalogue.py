"""What one vLLM release declares: engine arguments, flags, sampling parameters, variables, signatures.

A release's part of the table in facts.py, as records. What a release decides at start-up, where it declares None, is in
resolve.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from packaging.version import InvalidVersion, Version

from rlaudit.errors import UsageError
from rlaudit.unknown import Unknown
from rlaudit.vllm.facts import facts


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

    @cached_property
    def engine(self) -> Mapping[str, Declared]:
        """The engine arguments."""
        return self._fields("engine")

    @cached_property
    def frontend(self) -> Mapping[str, Declared]:
        """The arguments of the API server."""
        return self._fields("frontend")

    @cached_property
    def cli(self) -> Mapping[str, str]:
        """A flag without leading dashes (`no-enable-prefix-caching`, `tp`) -> engine argument or front-end name."""
        return self._facts("cli")

    @cached_property
    def sampling(self) -> Mapping[str, Declared]:
        """The fields of SamplingParams."""
        return self._fields("sampling")

    @cached_property
    def variables(self) -> Mapping[str, Declared]:
        """The environment variables."""
        return self._fields("variables")

    @cached_property
    def nested(self) -> Mapping[str, Declared]:
        """The fields of config objects, `compilation_config.cudagraph_mode`."""
        return self._fields("nested")

    @cached_property
    def signatures(self) -> Mapping[str, tuple[str, ...]]:
        """The parameter names of the asynchronous engine's methods, and of `LLM.` methods."""
        return {name: tuple(parameters) for name, parameters in self.signature_defaults.items()}

    @cached_property
    def signature_defaults(self) -> Mapping[str, Mapping[str, Any]]:
        """The defaults of these parameters."""
        return self._facts("signatures")

    @cached_property
    def routes(self) -> Mapping[str, str]:
        """HTTP routes of the API server -> the variable that must be set for the route to exist, else empty."""
        return self._facts("routes")

    @cached_property
    def resolvers(self) -> Mapping[str, Resolver]:
        """The functions that decide a value, by the value's name."""
        return {name: _resolver(*texts) for name, texts in self._facts("resolvers").items()}

    @property
    def source(self) -> str:
        """The file that was read."""
        return facts().releases[str(self.version)]

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
        return _at(older[-1], requested)

    def _facts(self, kind: str) -> dict[str, Any]:
        return facts().of(kind, str(self.version))

    def _fields(self, kind: str) -> dict[str, Declared]:
        fields = {}
        for name, (stored, annotation, line, *choices) in self._facts(kind).items():
            default, config = _default(stored) if isinstance(stored, dict) else (stored, "")
            fields[name] = Declared(name, default, tuple(choices) or None, annotation, line, config)
        return fields


@lru_cache(maxsize=8)
def _at(version: Version, requested: Version) -> Catalogue:
    return Catalogue(version, requested)


@lru_cache(maxsize=1)
def known_versions() -> tuple[Version, ...]:
    """Return every catalogued release, oldest first."""
    return tuple(map(Version, facts().releases))


def _resolver(fingerprint: str, *lines: str) -> Resolver:
    parts = [line.partition("=") for line in lines]
    assigned = tuple((line, value) for line, sign, value in parts if sign)
    return Resolver(fingerprint, tuple(line for line, sign, _ in parts if not sign), assigned)


def _default(stored: dict[str, Any]) -> tuple[Any, str]:
    match stored:
        case {"object": str(config)}:
            return Unknown(f"nothing sets this argument, so vLLM makes a {config} when it starts"), config
        case {"expression": str(text)}:
            return Unknown(f"vLLM computes the default when it is imported, as `{text}`"), ""
        case {"required": True}:
            return Unknown("this argument has no default: set it"), ""
    return stored, ""


__all__ = ["Catalogue", "Declared", "Resolver", "known_versions"]
