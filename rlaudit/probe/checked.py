"""A question to a server that is not about one sampling parameter, and what came of it. One a file in `checks/`."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Server


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What came of a question. found: something to know of; None: not told, and `answer` says why."""

    found: bool | None
    answer: str
    # By name, with the unit in it.
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A question."""

    name: str
    question: str
    # Raises Stopped and Spent.
    ask: Callable[[Server, Observations], Checked]


@cache
def checks() -> tuple[Check, ...]:
    """Return every check, in the order of their files."""
    package = importlib.import_module("rlaudit.probe.checks")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}").CHECK for name in names)


def untold(because: str) -> Checked:
    """Return what came of a question that has no answer."""
    return Checked(found=None, answer=because)
