"""Which engines a self-test plants in: where they run, which releases they are, and what they load."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlaudit.engines.environments.given_environment import given_environment
from rlaudit.engines.environments.given_interpreters import GivenInterpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.vllm.engine import ENGINE
from rlaudit.selftest.engines.engine_plants import STANDARD


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


def engines_under_test(accelerator: Accelerator, given: GivenInterpreters, model: str | None) -> EnginesUnderTest:
    """The releases of the interpreters that were given, or one for each engine where none was.

    Raises what asking an interpreter raises, where one was given without its release.
    """
    if given.engine:
        release = given_environment(ENGINE.package, given.engine, build=accelerator.kind).spec.version
        given = replace(given, by_release={release: given.engine}, engine=())
    return EnginesUnderTest(accelerator, tuple(given.by_release) or STANDARD, given, model)
