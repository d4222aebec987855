"""Which engines a self-test plants in, where they run and what they load; and what is left out, by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evidence.selftest.engines.engine_plants import STANDARD, engine_of, engine_plants
from evidence.selftest.engines.update_plants import CACHING_OF, update_plants
from rlaudit.causes.stale_prefix_kv import NAME as STALE_PREFIX_KV
from rlaudit.engines.environments.given_environment import given_environment
from rlaudit.engines.environments.given_interpreters import GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.inside.engine import ENGINE


@dataclass(frozen=True)
class EnginesUnderTest:
    """`given` are interpreters for the releases; without any they are built. `model` is another than the default."""

    accelerator: Accelerator
    releases: tuple[str, ...]
    given: GivenInterpreters
    model: str | None = None

    @property
    def recipe_keys(self) -> Mapping[str, Any]:
        """What every recipe of the self-test says on top of its own."""
        return {} if self.model is None else {"model": self.model}

    def given_for(self, releases: Sequence[str]) -> GivenInterpreters:
        """The interpreters of these releases: more were given than one plan needs."""
        by_release = {release: command for release, command in self.given.by_release.items() if release in releases}
        return replace(self.given, by_release=by_release)


def engines_under_test(accelerator: Accelerator, given: GivenInterpreters, model: str | None) -> EnginesUnderTest:
    """The releases of the interpreters that were given, or one for each engine where none was.

    Raises what asking an interpreter raises, where one was given without its release.
    """
    if given.engine:
        release = given_environment(ENGINE.package, given.engine, build=accelerator.kind).spec.version
        given = replace(given, by_release={release: given.engine}, engine=())
    return EnginesUnderTest(accelerator, tuple(given.by_release) or STANDARD, given, model)


def not_planted(releases: Sequence[str] = STANDARD) -> list[str]:
    """One line for each reason: engines that nobody gave, and a cache that is left off."""
    kinds = {engine_of(release) for release in releases}
    lines = []
    for standard in STANDARD:
        kind = engine_of(standard)
        if kind not in kinds:
            names = [plant.name for plant in engine_plants([standard])]
            names += [plant.name for plant in update_plants([standard])]
            lines.append(f"not planted here, as no interpreter holds an engine {kind}: {', '.join(names)}")
    uncached = [release for release in releases if CACHING_OF[engine_of(release)] == "off"]
    lines += [
        f"not planted here: {STALE_PREFIX_KV} on {release}: V0's CPU build cannot run with prefix caching, so it is off"
        for release in uncached
    ]
    return lines
