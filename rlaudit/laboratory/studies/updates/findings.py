"""The findings of a judged run, a sentence each: what serves wrong weights or loses requests, and what to call instead.

An error is something that an RL run would train on without knowing. A warning would be noticed, late. A note is a fact
about a release that a caller has to know. What the stale-KV protocol found is stated once for each engine start, with
the weakest of its figures, so that no statement is stronger than any case behind it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from rlaudit.laboratory.studies.updates.cases import FLIGHT, CaseKind
from rlaudit.laboratory.studies.updates.judge import JudgedCase
from rlaudit.laboratory.studies.updates.parts import HEAD, Parts
from rlaudit.laboratory.studies.updates.requests import RequestCount
from rlaudit.laboratory.studies.updates.staleness import Staleness
from rlaudit.layers import Verdict
from rlaudit.measurement.contrast import Contrast
from rlaudit.measurement.measure import Measurement
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.severity import Severity

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
# Cheapest first: nothing of a flight is computed twice, then nothing is sampled twice.
PREFERENCE = tuple(product((PauseMode.KEEP, PauseMode.WAIT, PauseMode.ABORT), (False, True)))


@dataclass(frozen=True)
class UpdateFinding:
    """`name` is stable; `case` is where it was seen (JudgedCase.where). sure: the figures. next: what to do."""

    name: str
    severity: Severity
    case: str
    message: str
    sure: str = ""
    next: str = ""


def findings_of(cases: Sequence[JudgedCase]) -> tuple[UpdateFinding, ...]:
    """Return every finding, errors first, each once however many cases show it."""
    found: dict[tuple[str, str], UpdateFinding] = {}
    of_cases = [finding for judged in cases for finding in _of_case(judged)]
    for finding in [*_of_new_requests(cases), *_of_flights(cases), *_of_parts(cases), *of_cases]:
        found.setdefault((finding.name, finding.message), finding)
    return tuple(sorted(found.values(), key=lambda finding: -finding.severity.rank))


def sequences_to_use(cases: Sequence[JudgedCase]) -> list[str]:
    """Return a sentence for each engine start with a matrix: its cheapest clean sequence, and why not the others."""
    by_start: dict[str, list[JudgedCase]] = {}
    for judged in cases:
        if judged.case.kind is CaseKind.MATRIX:
            by_start.setdefault(judged.record.start.name, []).append(judged)
    return [f"{name}: {_choice(matrix, cases)}" for name, matrix in by_start.items()]


def _choice(matrix: Sequence[JudgedCase], everything: Sequence[JudgedCase]) -> str:
    start = matrix[0].record.start
    clean = {(judged.case.mode, judged.case.clear_cache): judged for judged in matrix if judged.clean}
    choice = next((clean[wanted] for wanted in PREFERENCE if wanted in clean), None)
    if choice is None:
        advice = "no sequence that was tried is clean"
    elif choice.record.kind == "V0":
        advice = f"use {choice.case.name}: hold the loop that steps the engine meanwhile, which has no pause of its own"
    else:
        advice = f"use {choice.case.name}"
    bad: dict[str, list[JudgedCase]] = {}
    for judged in matrix:
        if judged.ran and judged.blemish is not None:
            bad.setdefault(judged.blemish, []).append(judged)
    old = next(
        (
            judged.parts.because
            for judged in everything
            if (judged.record.start.version, judged.record.start.path) == (start.version, start.path)
            and judged.parts is not None
            and judged.parts.verdict is Verdict.MISMATCH
        ),
        None,
    )
    seen = "".join(f"; not clean: {sequences(those)} ({blemish})" for blemish, those in bad.items())
    return advice + seen + (f"; with any of them, {old}" if old else "")


def _of_case(judged: JudgedCase) -> Iterator[UpdateFinding]:
    start, case, where = judged.record.start, judged.case, judged.where
    at = f"{start.name}, {case.name}"
    if judged.problem is not None:
        if judged.unsupported or case.kind is CaseKind.PATH:
            yield UpdateFinding("refused", NOTE, where, f"vLLM {start.version}, {start.path}: {judged.problem}")
        else:
            yield UpdateFinding("case-not-run", WARNING, where, f"{at}: {judged.problem}")
        return
    if judged.continuity is not None and judged.continuity.verdict is Verdict.MISMATCH:
        yield UpdateFinding("flight-broken", ERROR, where, f"{at}: {judged.continuity.because}")
    for who, count in (("in flight", judged.in_flight), ("submitted around the update", judged.others)):
        if not count.in_order:
            yield UpdateFinding("requests-lost", ERROR, where, f"{at}: of the requests {who}, {_wrong(count)}")
    if case.mode is PauseMode.ABORT and judged.in_flight.aborted:
        twice = sum(flight.surplus_logprobs > 0 for flight in judged.record.of(case, FLIGHT))
        repeated = (
            f"; the last output of {twice} repeats logprobs that came before: do not append them" if twice else ""
        )
        yield UpdateFinding(
            "requests-aborted",
            NOTE,
            where,
            f"vLLM {start.version}: mode=abort ended {judged.in_flight.aborted} of {judged.in_flight.submitted} "
            "requests in flight; their tokens are returned and the caller has to submit the rest again"
            f"{repeated}",
        )


def _of_new_requests(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield whether new requests are served old keys and values, for every engine start in turn."""
    by_start: dict[str, list[tuple[JudgedCase, Staleness]]] = {}
    for judged in cases:
        if judged.staleness is not None and judged.problem is None:
            by_start.setdefault(judged.record.start.name, []).append((judged, judged.staleness))
    for judged_of_start in by_start.values():
        yield from _of_start(judged_of_start)


def _of_start(cases: Sequence[tuple[JudgedCase, Staleness]]) -> Iterator[UpdateFinding]:
    start = cases[0][0].record.start
    stale = [(judged, found, found.excess) for judged, found in cases if found.found and found.excess is not None]
    clean = [
        (judged, found, found.excess) for judged, found in cases if found.verdict is Verdict.MATCH and found.excess
    ]
    unclear = [(judged, found) for judged, found in cases if found.verdict is Verdict.INCONCLUSIVE]

    if stale:
        least = min(stale, key=lambda one: one[2].low or 0.0)
        yield UpdateFinding(
            "stale-kv",
            ERROR,
            least[0].where,
            f"{start.name}: new requests are served keys and values of the old weights with "
            f"{sequences([judged for judged, _, _ in stale])}",
            f"excess k3 at least {_of_contrast(least[2])} nats in each, against a noise control of at most "
            f"{max(_size(found.control) for _, found, _ in stale):.1g}; "
            f"{least[1].cached_tokens} prompt tokens came from the cache",
            "clear_cache=True with the pause, or prefix caching off, or a cache salt per version",
        )
    if clean:
        most = max(clean, key=lambda one: one[2].high or 0.0)
        yield UpdateFinding(
            "no-stale-kv",
            NOTE,
            most[0].where,
            f"{start.name}: new requests are served nothing stale with "
            f"{sequences([judged for judged, _, _ in clean])}: excess k3 at most {_of_contrast(most[2])}, "
            f"{max(found.cached_tokens for _, found, _ in clean)} prompt tokens from the cache",
        )
    for judged, found in unclear:
        text = f"{judged.record.start.name}, {judged.case.name}: {found.because}"
        yield UpdateFinding(
            "stale-kv-undecided", WARNING, judged.where, text, "undecided", "more prompts (--prompts, --samples)"
        )


def _of_flights(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield whether requests in flight go on over the update on old keys and values, once for each release."""
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
        lag = "" if lagged is None else f"; lag gives {_interval(lagged.value, lagged.low, lagged.high)}"
        levels = dict.fromkeys(
            f"{factor}={level}" for one, _ in found_of_version for factor, level in one.record.start.levels.items()
        )
        way_out = (
            "V0 cannot compute them again: let requests finish before the update"
            if judged.record.kind == "V0"
            else "clear_cache=True computes them again"
        )
        yield UpdateFinding(
            "flight-on-old-keys",
            WARNING,
            judged.where,
            f"vLLM {version}, {', '.join(levels)}: requests in flight go on with old keys and values with "
            f"{sequences([one for one, _ in found_of_version])}",
            f"k3 of their later tokens under the new weights {_interval(flight.value, flight.low, flight.high)}{lag}",
            f"{way_out}; to keep them, as PipelineRL does, is a choice to correct for",
        )


def _of_parts(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield the same part of one release that stays old by several paths, once."""
    grouped: dict[tuple[str, str, str], list[tuple[JudgedCase, Parts]]] = {}
    for judged in cases:
        parts, start = judged.parts, judged.record.start
        if parts is None or judged.problem is not None:
            continue
        if parts.verdict in (Verdict.MISMATCH, Verdict.INCONCLUSIVE):
            # The matrix of a release is one engine with each of its levels: what is old there is old with all of them.
            alone = judged.case.kind is CaseKind.PATH or start.transport != "disk"
            levels = ", ".join(start.own) if alone else ""
            grouped.setdefault((start.version, levels, parts.because), []).append((judged, parts))
    for (version, levels, because), found in grouped.items():
        judged, parts = found[0]
        paths = ", ".join(dict.fromkeys(one.record.start.path for one, _ in found))
        with_ = f" with {levels}" if levels else ""
        yield UpdateFinding(
            "part-not-updated",
            ERROR if parts.verdict is Verdict.MISMATCH else WARNING,
            judged.where,
            f"vLLM {version}{with_}, loading by {paths}: {because}",
            parts.sure,
            _mend_parts(parts),
        )


def _mend_parts(parts: Parts) -> str:
    if parts.read_back is not None and HEAD in parts.read_back.old_behind_new_bytes:
        return (
            "the head computes with a copy that the update does not reach: load an untied checkpoint (lm_head.weight "
            "written out, tie_word_embeddings false) at the start, or restart the engine for new weights"
        )
    return "use another path for loading, and audit it again"


def _wrong(count: RequestCount) -> str:
    in_order = ("submitted", "completed", "aborted")
    wrong = {name: number for name, number in asdict(count).items() if number and name not in in_order}
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in wrong.items())


def sequences(cases: Sequence[JudgedCase]) -> str:
    """Return the names of cases, those that differ in their mode only as one: mode=keep|wait, clear_cache=False."""
    modes: dict[str, list[str]] = {}
    for judged in cases:
        case = judged.case
        if case.kind is CaseKind.MATRIX and case.mode is not PauseMode.NONE:
            named = modes.setdefault(f"clear_cache={case.clear_cache}", [])
            named += [case.mode] if case.mode not in named else []
        else:
            modes.setdefault(judged.case.name, [])
    return "; ".join(f"mode={'|'.join(named)}, {rest}" if named else rest for rest, named in modes.items())


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return "unknown"
    return f"{value:.2g} [{low:.2g}, {high:.2g}]"


def _of_contrast(found: Contrast) -> str:
    return _interval(found.difference, found.low, found.high)


def _size(found: Contrast | None) -> float:
    return 0.0 if found is None else max(abs(found.low or 0.0), abs(found.high or 0.0))
