"""Names that any catalogued release has: what another release knows was removed or is yet to come, and is no typo."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlaudit.vllm.catalogue import DATA, Catalogue, known_versions


@dataclass(frozen=True)
class _Names:
    flags: dict[str, tuple[str, str]]
    engine: frozenset[str]
    sampling: frozenset[str]


def flag_of_any_release(spelt: str) -> tuple[str, str] | None:
    """Engine argument and type of a flag as dashes spell it, None where no release has it."""
    for catalogue in _ends():
        target = catalogue.cli.get(spelt)
        if target is not None and target in catalogue.engine:
            return target, catalogue.engine[target].kind
    return _all().flags.get(spelt)


def is_engine_argument(name: str) -> bool:
    """Whether any release's EngineArgs has it."""
    return any(name in catalogue.engine for catalogue in _ends()) or name in _all().engine


def is_sampling_parameter(name: str) -> bool:
    """Whether any release's SamplingParams has it."""
    return any(name in catalogue.sampling for catalogue in _ends()) or name in _all().sampling


def _ends() -> tuple[Catalogue, Catalogue]:
    """The oldest and the newest release: between them they have most names."""
    versions = known_versions()
    return Catalogue.at(versions[0]), Catalogue.at(versions[-1])


@lru_cache(maxsize=1)
def _all() -> _Names:
    """Every name, from the files alone: 45 whole catalogues would cost a quarter of a second."""
    flags: dict[str, tuple[str, str]] = {}
    engine: set[str] = set()
    sampling: set[str] = set()
    for version in known_versions():
        data: dict[str, Any] = json.loads((DATA / f"{version}.json").read_text(encoding="utf-8"))
        engine |= data["engine"].keys()
        sampling |= data["sampling"].keys()
        for spelt, target in data["cli"].items():
            if target in data["engine"]:
                flags.setdefault(spelt, (target, data["engine"][target][1]))
    return _Names(flags, frozenset(engine), frozenset(sampling))
