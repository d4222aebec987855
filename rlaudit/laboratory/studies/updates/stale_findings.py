"""What the stale-KV protocol found on one engine start, said once for all its sequences of calls.

New requests are served old keys and values, or they are not, and requests in flight go on with their own old ones, or
they do not: three statements with the weakest of their figures, so that none is stronger than any case behind it.
"""

from collections.abc import Iterator, Sequence

from rlaudit.laboratory.studies.updates.cases import CaseKind
from rlaudit.laboratory.studies.updates.judge import JudgedCase
from rlaudit.laboratory.studies.updates.staleness import Staleness
from rlaudit.laboratory.studies.updates.update_finding import (
    ERROR,
    NOTE,
    WARNING,
    UpdateFinding,
    finding_of,
    interval,
)
from rlaudit.layers import Verdict
from rlaudit.measurement.contrast import Contrast
from rlaudit.measurement.measure import Measurement


def stale_findings(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """The findings of every engine start in turn."""
    by_start: dict[str, list[tuple[JudgedCase, Staleness]]] = {}
    for judged in cases:
        if judged.staleness is not None and judged.problem is None:
            by_start.setdefault(judged.record.start.name, []).append((judged, judged.staleness))
    for judged_of_start in by_start.values():
        yield from _of_start(judged_of_start)
    yield from _of_flights(cases)


def sequences(cases: Sequence[JudgedCase]) -> str:
    """The names of cases, those that differ in their mode only as one: mode=keep|wait|abort, clear_cache=False."""
    modes: dict[str, list[str]] = {}
    for judged in cases:
        case = judged.case
        if case.kind is CaseKind.MATRIX and case.mode != "none":
            named = modes.setdefault(f"clear_cache={case.clear_cache}", [])
            named += [case.mode] if case.mode not in named else []
        else:
            modes.setdefault(judged.case.name, [])
    return "; ".join(f"mode={'|'.join(named)}, {rest}" if named else rest for rest, named in modes.items())


def _of_start(cases: Sequence[tuple[JudgedCase, Staleness]]) -> Iterator[UpdateFinding]:
    start = cases[0][0].record.start
    stale = [(judged, found, found.excess) for judged, found in cases if found.found and found.excess is not None]
    clean = [
        (judged, found, found.excess) for judged, found in cases if found.verdict is Verdict.MATCH and found.excess
    ]
    unclear = [(judged, found) for judged, found in cases if found.verdict is Verdict.INCONCLUSIVE]

    if stale:
        least = min(stale, key=lambda one: one[2].low or 0.0)
        yield finding_of(
            least[0],
            "stale-kv",
            ERROR,
            f"{start.name}: new requests are served keys and values of the old weights with "
            f"{sequences([judged for judged, _, _ in stale])}",
            f"excess k3 at least {_interval(least[2])} nats in each, against a noise control of at most "
            f"{max(_size(found.control) for _, found, _ in stale):.1g}; "
            f"{least[1].cached_tokens} prompt tokens came from the cache",
            "clear_cache=True with the pause, or prefix caching off, or a cache salt per version",
        )
    if clean:
        most = max(clean, key=lambda one: one[2].high or 0.0)
        yield finding_of(
            most[0],
            "no-stale-kv",
            NOTE,
            f"{start.name}: new requests are served nothing stale with "
            f"{sequences([judged for judged, _, _ in clean])}: excess k3 at most {_interval(most[2])}, "
            f"{max(found.cached_tokens for _, found, _ in clean)} prompt tokens from the cache",
        )
    for judged, found in unclear:
        text = f"{judged.record.start.name}, {judged.case.name}: {found.because}"
        yield finding_of(
            judged, "stale-kv-undecided", WARNING, text, "undecided", "more prompts (--prompts, --samples)"
        )


def _of_flights(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Requests in flight that go on over the update on keys and values of the old weights, once for each release."""
    kept: dict[str, list[tuple[JudgedCase, Measurement]]] = {}
    for judged in cases:
        found = judged.staleness
        if judged.case.kind is not CaseKind.MATRIX or not judged.ran or found is None or found.flight is None:
            continue
        margin = found.flight_margin
        if margin is not None and found.flight.low is not None and found.flight.low > margin:
            kept.setdefault(judged.record.start.version, []).append((judged, found.flight))
    for version, found_of_version in kept.items():
        judged, flight = max(found_of_version, key=lambda one: one[1].value or 0.0)
        lagged = next((lag.trainer_weights.get("k3") for lag in judged.lags if lag.lag == 1), None)
        lag = "" if lagged is None else f"; lag gives {interval(lagged.value, lagged.low, lagged.high)}"
        levels = dict.fromkeys(
            f"{factor}={level}" for one, _ in found_of_version for factor, level in one.record.start.levels.items()
        )
        yield UpdateFinding(
            name="flight-on-old-keys",
            severity=WARNING,
            version=version,
            path=judged.record.start.path,
            case=judged.where,
            message=f"vLLM {version}, {', '.join(levels)}: requests in flight go on with old keys and values with "
            f"{sequences([one for one, _ in found_of_version])}",
            sure=f"k3 of their later tokens under the new weights {interval(flight.value, flight.low, flight.high)}"
            f"{lag}",
            next=f"{_way_out(judged)}; to keep them, as PipelineRL does, is a choice to correct for",
        )


def _way_out(judged: JudgedCase) -> str:
    if judged.record.kind == "V0":
        return "V0 cannot compute them again: let requests finish before the update"
    return "clear_cache=True computes them again"


def _interval(found: Contrast) -> str:
    return interval(found.difference, found.low, found.high)


def _size(found: Contrast | None) -> float:
    return 0.0 if found is None else max(abs(found.low or 0.0), abs(found.high or 0.0))
