"""The findings of a judged run, a sentence each: what serves wrong weights or loses requests, and what to call instead.

An error is something that an RL run would train on without noticing. A warning would be noticed, late. A note is a fact
about a release that a caller has to know. Cases of one release that leave the same behind are one finding, with the
weakest of their figures, so that no statement is stronger than any case behind it.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rlaudit.diagnosis.updates.judge import Fault, JudgedCase
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.severity import Severity
from rlaudit.statistics.estimate import figure
from rlaudit.statistics.measurement.contrast import Contrast

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Kind:
    """What is said of a fault. name: stable. way_out: in vLLM's words."""

    name: str
    severity: Severity
    what: str
    way_out: str


KINDS = {
    Fault.STALE: Kind(
        "stale-kv",
        Severity.ERROR,
        "old keys and values reach new requests",
        "set clear_cache=True in pause_generation, or a cache_salt per version of the weights",
    ),
    Fault.PART: Kind("part-not-updated", Severity.ERROR, "", "use another path for loading, and audit it again"),
    Fault.OLD_ADAPTER: Kind(
        "part-not-updated",
        Severity.ERROR,
        "requests get the old adapter",
        "give each adapter a new lora_int_id, or set load_inplace=True",
    ),
    Fault.LOST: Kind("requests-lost", Severity.ERROR, "requests are lost", "use another sequence of calls"),
    Fault.BROKEN: Kind(
        "flight-broken",
        Severity.ERROR,
        "tokens do not follow those before the pause",
        "set async_scheduling=False, or use mode=wait",
    ),
    Fault.OLD_FLIGHTS: Kind(
        "flight-on-old-keys",
        Severity.WARNING,
        "requests in flight keep old keys and values",
        "clear_cache=True in pause_generation computes them again; mode=wait lets requests end first",
    ),
    Fault.UNDECIDED: Kind("stale-kv-undecided", Severity.WARNING, "not decided", "more prompts (--prompts, --samples)"),
}
RENAMED = "give each adapter a lora_name that no other had, or reset the prefix cache with it"
# The head computes with a copy that the update does not reach.
UNTIED = (
    "start with an untied checkpoint (lm_head.weight written out, tie_word_embeddings=false), or restart the engine"
)


@dataclass(frozen=True)
class UpdateFinding:
    """A sentence about judged cases."""

    # Stable.
    name: str
    severity: Severity
    # JudgedCase.where.
    case: str
    message: str
    # The figures.
    sure: str = ""
    # What to do.
    next: str = ""


def findings_of(cases: Sequence[JudgedCase]) -> tuple[UpdateFinding, ...]:
    """Return every finding, errors first."""
    faulty = [((fault, case.way, ""), case) for case in cases if case.ran for fault in case.faults]
    # A matrix has one engine for each level of a release: what is old in one by its path is old in all.
    faulty += [
        ((Fault.PART, case.way, case.parts.because), case)
        for case in cases
        if case.ran and not case.of_adapter and case.parts is not None
        if case.parts.verdict in (Verdict.MISMATCH, Verdict.INCONCLUSIVE)
    ]
    groups = grouped(faulty, lambda of_case: of_case[0])
    findings = [_finding(fault, [case for _, case in same]) for (fault, *_), same in groups.items()]
    findings += {note.message: note for case in reversed(cases) for note in _notes(case)}.values()
    return tuple(sorted(findings, key=lambda finding: -finding.severity.rank))


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by this key, in order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def way_out(fault: Fault, case: JudgedCase) -> str:
    """Return what to set or call instead."""
    if fault is Fault.STALE and case.of_adapter:
        return RENAMED
    read = case.parts.read_back if case.parts is not None else None
    return UNTIED if fault is Fault.PART and read is not None and read.old_head_behind else KINDS[fault].way_out


def _finding(fault: Fault, cases: Sequence[JudgedCase]) -> UpdateFinding:
    kind, first = KINDS[fault], cases[0]
    levels = dict.fromkeys(f"{factor}={level}" for case in cases for factor, level in case.levels.items())
    starts = dict.fromkeys(case.start for case in cases)
    where = first.start if len(starts) == 1 else f"vLLM {first.version}, {', '.join(levels)}"
    message, severity = f"{where}: {kind.what} with {sequences(cases)}", kind.severity
    if fault is Fault.PART and first.parts is not None:
        message = f"vLLM {first.version}, loading by {first.path}: {first.parts.because}"
        severity = Severity.ERROR if first.leaves_parts else Severity.WARNING
    return UpdateFinding(kind.name, severity, first.where, message, _figures(fault, cases), way_out(fault, first))


def _figures(fault: Fault, cases: Sequence[JudgedCase]) -> str:
    """Return the figures behind a fault: the weakest, or those of the first case."""
    first = cases[0]
    stale = [(case, case.staleness) for case in cases if case.staleness is not None]
    match fault:
        case Fault.STALE:
            weakest, excess = min(
                ((of, added) for _, of in stale if (added := of.excess)), key=lambda of_case: of_case[1].low or 0.0
            )
            control = max(_largest_effect(of.control) for _, of in stale)
            return (
                f"they add at least {figure(excess.difference, excess.low, excess.high)} nats of k3 in each, a noise "
                f"control at most {control:.1g}; {weakest.cached_tokens} prompt tokens came from the cache"
            )
        case Fault.OLD_FLIGHTS:
            flights = [(case, late) for case, of in stale if (late := of.flight)]
            farthest, flight = max(flights, key=lambda of_case: of_case[1].value or 0.0)
            lagged = next((lag.trainer_weights.get("k3") for lag in farthest.lags if lag.lag == 1), None)
            lag = "" if lagged is None else f"; lag gives {figure(lagged.value, lagged.low, lagged.high)}"
            k3 = figure(flight.value, flight.low, flight.high)
            return f"k3 of their later tokens under the new weights {k3}{lag}"
        case Fault.PART | Fault.OLD_ADAPTER:
            return first.parts.sure if first.parts is not None else ""
        case Fault.LOST:
            counts = [count for case in cases for count in (case.in_flight, case.around)]
            return "; ".join(dict.fromkeys(filter(None, map(_losses, counts))))
        case Fault.BROKEN:
            return first.continuity.because if first.continuity is not None else ""
    in_flight = "the interval of k3 of requests in flight reaches over what counts"
    return "; ".join(dict.fromkeys(in_flight if of.old_flights is None else of.because for _, of in stale))


def _largest_effect(effect: Contrast | None) -> float:
    return 0.0 if effect is None else max(abs(effect.low or 0.0), abs(effect.high or 0.0))


def _losses(count: RequestCount) -> str:
    return ", ".join(f"{number} {end}" for end, number in count.ends.items() if end not in ("completed", "aborted"))


def _notes(case: JudgedCase) -> Iterator[UpdateFinding]:
    """Yield that a case did not run, and what an abort returns."""
    if case.problem is not None and case.unsupported:
        message = f"vLLM {case.version}, {case.loading}: {case.problem}"
        yield UpdateFinding("refused", Severity.NOTE, case.where, message)
    elif case.problem is not None:
        message = f"{case.start}, {case.name}: {case.problem}"
        yield UpdateFinding("case-not-run", Severity.WARNING, case.where, message)
    elif case.mode is PauseMode.ABORT and case.in_flight.aborted:
        twice = f"; the last output of {case.repeated} repeats logprobs that came before: do not append them"
        ended = f"mode=abort ended {case.in_flight.aborted} of {case.in_flight.submitted} requests in flight"
        rest = "their tokens are returned, and the rest has to be submitted again"
        message = f"vLLM {case.version}: {ended}; {rest}{twice if case.repeated else ''}"
        yield UpdateFinding("requests-aborted", Severity.NOTE, case.where, message)


def sequences(cases: Iterable[JudgedCase]) -> str:
    """Return the names of cases, those that differ in their mode only as one: mode=keep|wait, clear_cache=False."""
    modes_by_name: dict[str, dict[str, None]] = {}
    for case in cases:
        if case.of_adapter or case.mode is PauseMode.NONE:
            modes_by_name.setdefault(case.name, {})
        else:
            modes_by_name.setdefault(case.caching, {})[case.mode] = None
    return "; ".join(f"mode={'|'.join(modes)}, {name}" if modes else name for name, modes in modes_by_name.items())
