"""A question to a server that is not about one sampling parameter, and what came of it. One a file in `checks/`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from rlaudit.discover import discover
from rlaudit.probe.observed import Observations
from rlaudit.probe.server import Server


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What came of a question. found: something to know of; None: not known, and `answer` says why."""

    found: bool | None
    answer: str
    # By name, with the unit in it.
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A question."""

    name: str
    question: str
    # Raises Stopped and Spent, and Refused or NotAnAnswer if the server does not answer this.
    ask: Callable[[Server, Observations], Checked]


@cache
def checks() -> tuple[Check, ...]:
    """Return every check, by name."""
    # Its files import this one.
    from rlaudit.probe import checks as files

    return tuple(discover(files, "CHECK", Check).values())


def unanswered(because: str) -> Checked:
    """Return what came of a question that has no answer."""
    return Checked(found=None, answer=because)


def differing(what: str, nats: float, noise: float, note: str = "") -> Checked:
    """Return whether logprobs that should be the same differ by more than noise, nats."""
    by = "by a cut token" if nats == math.inf else f"by at most {nats:.2g} nats"
    return Checked(
        found=nats > noise,
        answer=f"{what} differ {by}{', more than noise' if nats > noise else ''}{note}",
        figures={"largest difference, nats": nats},
    )
