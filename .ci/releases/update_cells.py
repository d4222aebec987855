"""What a release makes of weight updates: the cells of the matrix of releases, from the cases of its report.

A case that a release has no calls for is *not there*, and one that was begun and did not end is *failed*: the words of
the engine are beside the matrix.
"""

from collections.abc import Iterator, Sequence

from releases.cells import figure_cell, word_cell
from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.parts import summary
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.diagnosis.updates.staleness import Staleness
from rlaudit.layers import Verdict
from rlaudit.report.parts.releases import Cell

NOT_THERE, FAILED = "not there", "failed"
NEW_REQUESTS = {
    Verdict.MATCH: "new weights only",
    Verdict.MISMATCH: "OLD KEYS AND VALUES",
    Verdict.INCONCLUSIVE: "undecided",
    Verdict.NOT_TESTED: "not tested",
}


def update_cells(cases: Sequence[JudgedCase]) -> Iterator[tuple[str, str, Cell]]:
    """Yield name, title and cell of what each case shows."""
    for case in cases:
        levels = ", ".join(f"{factor}={level}" for factor, level in case.levels.items()) or case.path
        place, title = f"{levels}/{case.name}", f"{levels}, {case.name}"
        if case.problem is not None:
            yield f"{place}/ran", title, word_cell(NOT_THERE if case.unsupported else FAILED)
            continue
        yield f"{place}/ran", title, word_cell("runs")
        yield from _requests(place, title, case)
        if case.parts is not None:
            yield f"{place}/parts", f"{title}: weights", word_cell(_parts(case))


def without_cases(cases: Sequence[JudgedCase]) -> list[str]:
    """Return the cases that did not run, each with the reason."""
    return [f"{case.start}, {case.name}: {case.problem}" for case in cases if case.problem is not None]


def _requests(place: str, title: str, case: JudgedCase) -> Iterator[tuple[str, str, Cell]]:
    """Yield what became of requests in flight, and which keys and values they and new requests have."""
    if not case.of_adapter:
        yield f"{place}/in_flight", f"{title}: requests in flight", word_cell(_ends(case.in_flight))
    yield f"{place}/around", f"{title}: requests submitted around it", word_cell(_ends(case.around))
    if case.continuity is not None and case.continuity.verdict in (Verdict.MATCH, Verdict.MISMATCH):
        goes_on = case.continuity.verdict is Verdict.MATCH
        word = "go on where they were" if goes_on else "DO NOT FOLLOW"
        yield f"{place}/continuity", f"{title}: requests that continue", word_cell(word)
    stale = case.staleness
    if stale is None:
        return
    yield f"{place}/stale", f"{title}: new requests have", word_cell(NEW_REQUESTS[stale.verdict])
    yield from _figures(place, title, stale)


def _figures(place: str, title: str, stale: Staleness) -> Iterator[tuple[str, str, Cell]]:
    excess, flight = stale.excess, stale.flight
    if excess is not None and excess.difference is not None:
        cell = figure_cell(excess.difference, excess.low, excess.high)
        yield f"{place}/excess", f"{title}: excess k3 of new requests (nats)", cell
    if flight is not None and flight.value is not None:
        cell = figure_cell(flight.value, flight.low, flight.high)
        yield f"{place}/flight", f"{title}: k3 of requests in flight (nats)", cell


def _parts(case: JudgedCase) -> str:
    parts = case.parts
    if parts is None or parts.verdict is Verdict.MATCH:
        return "all new"
    read = parts.read_back
    if parts.verdict is Verdict.MISMATCH and read is not None and read.old:
        return f"{len(read.old)} OLD: {summary(read.old, shown=1)}"
    return "undecided" if parts.verdict is Verdict.INCONCLUSIVE else parts.because


def _ends(count: RequestCount) -> str:
    """Return how the requests ended, without their number: how many an abort meets is up to the clock."""
    return ", ".join(count.ends) or "none"
