"""A step of a process that died, as reports show it: apart from what reads recordings, which no config waits for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ShownStep:
    """A step as a front end saw it ("step"), or as a worker began it ("batch"). time: of day, UTC, or the host's clock.

    state: of a batch, whether its call had returned; of a step, how many requests ended with it.
    """

    process: int
    what: str
    number: int
    time: str
    requests: int
    tokens: int
    cached: int | None
    state: str
