"""How far engine and trainer are apart before any update: what no update can be blamed for.

In float32 that is nothing (1e-10 nats of k3). In bfloat16 it is about 2e-3, above any useful margin: weights fit when
their tokens are as near to the trainer as those of the engine that nobody had touched yet.
"""

from collections.abc import Sequence

from rlaudit.laboratory.studies.updates.cases import BEFORE, FLIGHT
from rlaudit.laboratory.studies.updates.records import Flight
from rlaudit.laboratory.studies.updates.scoring import Scorebook, k3_of, pairs_of


def fit_margin(flights: Sequence[Flight], book: Scorebook, margin: float) -> float:
    """k3 in nats below which tokens fit their weights: `margin` above the upper end of k3 before the update."""
    before = [flight for flight in flights if flight.run in (BEFORE, FLIGHT) and flight.error is None]
    pairs = pairs_of(
        before,
        lambda flight: book.logprobs("0", flight),
        lambda flight: [version == 0 for version in flight.versions],
    )
    floor = k3_of(pairs)
    return margin if floor is None else margin + max(floor.high or 0.0, floor.value or 0.0)
