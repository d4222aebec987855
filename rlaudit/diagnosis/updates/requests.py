"""What became of the requests around an update: completed, aborted, truncated, duplicated, lost, leaked.

Every request has a fixed number of tokens with `ignore_eos`, so a shorter completion lost tokens and a longer one got
some twice. An abort is no loss: mode=abort promises it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rlaudit.laboratory.studies.updates.records import Flight

COMPLETE = ("length", "stop")


@dataclass(frozen=True)
class RequestCount:
    """The number of requests by how they ended."""

    submitted: int = 0
    completed: int = 0
    aborted: int = 0
    truncated: int = 0
    duplicated: int = 0
    lost: int = 0
    failed: int = 0
    # Tokens that arrived while the engine reported that it was paused.
    leaked_tokens: int = 0

    @property
    def in_order(self) -> bool:
        """Whether every request completed, once and whole, or was aborted."""
        return self.submitted == self.completed + self.aborted and not self.leaked_tokens

    @property
    def ends(self) -> dict[str, int]:
        """How requests ended and what leaked, by name, without what did not happen."""
        counts = {name.replace("_", " "): number for name, number in asdict(self).items() if number}
        return {name: number for name, number in counts.items() if name != "submitted"}


def count_requests(flights: Sequence[Flight], *, paused: bool) -> RequestCount:
    """Count how requests ended. paused: whether the update has a pause, in which nothing may be sampled."""
    ends = [_ending(flight) for flight in flights]
    leaked = sum(version is None for flight in flights for version in flight.versions) if paused else 0
    return RequestCount(submitted=len(flights), leaked_tokens=leaked, **{end: ends.count(end) for end in set(ends)})


def _ending(flight: Flight) -> str:
    tokens = len(flight.token_ids)
    tests = {
        "lost": flight.lost,
        "failed": flight.error is not None,
        "aborted": flight.finish_reason == "abort",
        "duplicated": flight.ends > 1 or tokens > flight.max_tokens,
        "truncated": flight.finish_reason in COMPLETE and tokens < flight.max_tokens,
        "completed": flight.finish_reason in COMPLETE,
    }
    return next((name for name, holds in tests.items() if holds), "lost")
