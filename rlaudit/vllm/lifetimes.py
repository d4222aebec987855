"""The first and the last release that has a name: of an argument, a flag, a variable or a nested key."""

from packaging.version import Version

from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.facts import facts

# Kind of name -> kind of fact.
KINDS = {
    "engine": "engine",
    "flag": "cli",
    "frontend": "frontend",
    "sampling": "sampling",
    "variable": "variables",
    "nested": "nested",
    "method": "signatures",
}


def lifetime(kind: str, name: str) -> tuple[Version, Version] | None:
    """Return the first and the last catalogued release with a name; None if no release has it."""
    span = facts().lifetime(KINDS[kind], name)
    return (Version(span[0]), Version(span[1])) if span else None


def first_without(kind: str, name: str) -> Version | None:
    """Return the first catalogued release that no longer has a name; None if the newest or no release has it."""
    span = lifetime(kind, name)
    return next((version for version in known_versions() if span is not None and version > span[1]), None)


def flag_of_any_release(spelt: str) -> tuple[str, str] | None:
    """Return engine argument and type of a flag as dashes spell it, None if no release has it.

    The oldest release of all decides, else the newest that has the flag.
    """
    span = lifetime("flag", spelt) or ()
    for version in span if known_versions()[0] in span else reversed(span):
        catalogue = Catalogue.at(version)
        target = catalogue.cli[spelt]
        if target in catalogue.engine:
            return target, catalogue.engine[target].kind
    return None


def names(kind: str) -> tuple[str, ...]:
    """Return every name of a kind that any release had."""
    return tuple(facts().histories(KINDS[kind]))
