"""A step of a process that died, as reports show it, without the code that reads recordings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ShownStep:
    """A step of a front end, or a batch of a worker."""

    process: int
    # "step" or "batch".
    what: str
    number: int
    # Of day, UTC, or the host's clock.
    time: str
    requests: int
    tokens: int
    cached: int | None
    # Of a batch, whether its call had returned; of a step, how many requests ended with it.
    state: str
