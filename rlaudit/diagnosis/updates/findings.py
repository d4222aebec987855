"""The findings of a judged run, a sentence each: what serves wrong weights or loses requests, and what to call instead.

An error is something that an RL run would train on without noticing. A warning would be noticed, late. A note is a fact
about a release that a caller has to know. The result of the stale-KV protocol is stated once for each engine start,
with the weakest of its figures, so that no statement is stronger than any case behind it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.parts import Parts
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.diagnosis.updates.staleness import Staleness
from rlaudit.laboratory.studies.updates.cases import FLIGHT, CaseKind
from rlaudit.laboratory.weight_path import ADAPTER
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.severity import Severity
from rlaudit.statistics.measurement.contrast import Contrast
from rlaudit.statistics.measurement.measure import Measurement

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
# Cheapest first: nothing of a flight is computed twice, then nothing is sampled twice. With each, whether the cache is
# cleared, and whether requests are salted.
PREFERENCE = tuple(
    product((PauseMode.KEEP, PauseMode.WAIT, PauseMode.ABORT), ((False, False), (True, False), (False, True)))
)


@dataclass(frozen=True)
class UpdateFinding:
    """A sentence about a judged case."""

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
    """Return every finding, errors first, each once however many cases show it."""
    findings: dict[tuple[str, str], UpdateFinding] = {}
    of_cases = [finding for judged in cases for finding in _case_findings(judged)]
    for finding in [*_stale_kv_findings(cases), *_flight_findings(cases), *_part_findings(cases), *of_cases]:
        findings.setdefault((finding.name, finding.message), finding)
    return tuple(sorted(findings.values(), key=lambda finding: -finding.severity.rank))


def sequences_to_use(cases: Sequence[JudgedCase]) -> list[str]:
    """Return a sentence for each engine start with a matrix: its cheapest clean sequence, and what is not clean."""
    by_start: dict[str, list[JudgedCase]] = {}
    for judged in cases:
        by_start.setdefault(judged.record.start.name, []).append(judged)
    return [f"{name}: {_sequence_to_use(matrix, cases)}" for name, matrix in by_start.items()]


def _sequence_to_use(matrix: Sequence[JudgedCase], everything: Sequence[JudgedCase]) -> str:
    start = matrix[0].record.start
    clean = {(case.case.mode, (case.case.clear_cache, case.case.salted)): case for case in matrix if case.clean}
    choice = next((clean[wanted] for wanted in PREFERENCE if wanted in clean), None)
    if start.path == ADAPTER:
        # Each way has weights of its own.
        choice, everything = next((case for case in matrix if case.clean), None), ()
    if choice is None:
        advice = "no sequence that was tried is clean"
    elif choice.record.kind == "V0":
        advice = f"use {choice.case.name}, and hold the loop that steps the engine meanwhile: the engine has no pause"
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
    unclean = "".join(f"; not clean: {sequences(cases)} ({blemish})" for blemish, cases in bad.items())
    return advice + unclean + (f"; with any of them, {old}" if old else "")


def _case_findings(judged: JudgedCase) -> Iterator[UpdateFinding]:
    start, case, where = judged.record.start, judged.case, judged.where
    at = f"{start.name}, {case.name}"
    if judged.problem is not None:
        if judged.unsupported:
            yield UpdateFinding("refused", NOTE, where, f"vLLM {start.version}, {judged.loading}: {judged.problem}")
        else:
            yield UpdateFinding("case-not-run", WARNING, where, f"{at}: {judged.problem}")
        return
    if judged.continuity is not None and judged.continuity.verdict is Verdict.MISMATCH:
        yield UpdateFinding("flight-broken", ERROR, where, f"{at}: {judged.continuity.because}")
    for who, count in (("in flight", judged.in_flight), ("submitted around the update", judged.others)):
        if not count.in_order:
            yield UpdateFinding("requests-lost", ERROR, where, f"{at}: of the requests {who}, {_losses(count)}")
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


def _stale_kv_findings(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield whether new requests are served old keys and values, for every engine start in turn."""
    by_start: dict[str, list[tuple[JudgedCase, Staleness]]] = {}
    for judged in cases:
        if judged.staleness is not None and judged.problem is None:
            by_start.setdefault(judged.record.start.name, []).append((judged, judged.staleness))
    for judged_of_start in by_start.values():
        yield from _findings_of_start(judged_of_start)


def _findings_of_start(cases: Sequence[tuple[JudgedCase, Staleness]]) -> Iterator[UpdateFinding]:
    start = cases[0][0].record.start
    excesses = [(judged, staleness, staleness.excess) for judged, staleness in cases if staleness.excess is not None]
    stale = [case for case in excesses if case[1].found]
    clean = [case for case in excesses if case[1].verdict is Verdict.MATCH]
    if stale:
        judged, staleness, excess = min(stale, key=lambda case: case[2].low or 0.0)
        yield UpdateFinding(
            "stale-kv",
            ERROR,
            judged.where,
            f"{start.name}: new requests are served keys and values of the old weights with "
            f"{sequences([judged for judged, _, _ in stale])}",
            f"they add at least {_excess_interval(excess)} nats of k3 in each, a noise control at most "
            f"{max(_largest_effect(staleness.control) for _, staleness, _ in stale):.1g}; "
            f"{staleness.cached_tokens} prompt tokens came from the cache",
            "another name for each adapter, or a reset of the prefix cache with it"
            if start.path == ADAPTER
            else "clear_cache=True with the pause, or prefix caching off, or a cache salt per version",
        )
    if clean:
        judged, _, excess = max(clean, key=lambda case: case[2].high or 0.0)
        yield UpdateFinding(
            "no-stale-kv",
            NOTE,
            judged.where,
            f"{start.name}: new requests get nothing stale with "
            f"{sequences([judged for judged, _, _ in clean])} (added k3 at most {_excess_interval(excess)}, "
            f"{max(staleness.cached_tokens for _, staleness, _ in clean)} prompt tokens from the cache)",
        )
    for judged, staleness in cases:
        if staleness.verdict is Verdict.INCONCLUSIVE:
            text = f"{start.name}, {judged.case.name}: {staleness.because}"
            yield UpdateFinding(
                "stale-kv-undecided", WARNING, judged.where, text, "undecided", "more prompts (--prompts, --samples)"
            )


def _flight_findings(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield whether requests in flight continue with old keys and values after the update, once for each release."""
    by_version: dict[str, list[tuple[JudgedCase, Measurement]]] = {}
    for judged in cases:
        staleness = judged.staleness
        if judged.case.kind is not CaseKind.MATRIX or not judged.ran or staleness is None or staleness.flight is None:
            continue
        margin = staleness.flight_margin
        if margin is not None and staleness.flight.low is not None and staleness.flight.low > margin:
            by_version.setdefault(judged.record.start.version, []).append((judged, staleness.flight))
    for version, flights in by_version.items():
        judged, flight = max(flights, key=lambda measured: measured[1].value or 0.0)
        lagged = next((lag.trainer_weights.get("k3") for lag in judged.lags if lag.lag == 1), None)
        lag = "" if lagged is None else f"; lag gives {_interval(lagged.value, lagged.low, lagged.high)}"
        levels = dict.fromkeys(
            f"{factor}={level}" for case, _ in flights for factor, level in case.record.start.levels.items()
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
            f"{sequences([case for case, _ in flights])}",
            f"k3 of their later tokens under the new weights {_interval(flight.value, flight.low, flight.high)}{lag}",
            f"{way_out}; to keep them, as PipelineRL does, is a choice to correct for",
        )


def _part_findings(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield the same part of one release that stays old by several paths, once."""
    grouped: dict[tuple[str, str, bool, str], list[tuple[JudgedCase, Parts]]] = {}
    for judged in cases:
        parts, start = judged.parts, judged.record.start
        if parts is None or judged.problem is not None:
            continue
        if parts.verdict in (Verdict.MISMATCH, Verdict.INCONCLUSIVE):
            # A matrix has one engine for each level of a release: a part that is old in one is old in all.
            levels = ", ".join(start.own) if start.transport != "disk" else ""
            adapter = start.path == ADAPTER
            grouped.setdefault((start.version, levels, adapter, parts.because), []).append((judged, parts))
    for (version, levels, adapter, because), members in grouped.items():
        judged, parts = members[0]
        paths = ", ".join(dict.fromkeys(case.loading for case, _ in members))
        with_ = f" with {levels}" if levels else ""
        yield UpdateFinding(
            "part-not-updated",
            ERROR if parts.verdict is Verdict.MISMATCH else WARNING,
            judged.where,
            f"vLLM {version}{with_}, loading by {paths}: {because}",
            parts.sure,
            "a new number for each adapter, or load_inplace" if adapter else _next_step(parts),
        )


def _next_step(parts: Parts) -> str:
    if parts.read_back is not None and parts.read_back.old_head_behind:
        return (
            "the head computes with a copy that the update does not reach: start with an untied checkpoint "
            "(lm_head.weight written out, tie_word_embeddings false), or restart the engine for new weights"
        )
    return "use another path for loading, and audit it again"


def _losses(count: RequestCount) -> str:
    in_order = ("submitted", "completed", "aborted")
    wrong = {name: number for name, number in asdict(count).items() if number and name not in in_order}
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in wrong.items())


def sequences(cases: Sequence[JudgedCase]) -> str:
    """Return the names of cases, those that differ in their mode only as one: mode=keep|wait, clear_cache=False."""
    modes_by_name: dict[str, list[str]] = {}
    for judged in cases:
        case = judged.case
        if case.kind is CaseKind.MATRIX and case.mode is not PauseMode.NONE:
            modes = modes_by_name.setdefault(case.caching, [])
            modes += [case.mode] if case.mode not in modes else []
        else:
            modes_by_name.setdefault(case.name, [])
    return "; ".join(f"mode={'|'.join(modes)}, {name}" if modes else name for name, modes in modes_by_name.items())


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return "unknown"
    return f"{value:.2g} [{low:.2g}, {high:.2g}]"


def _excess_interval(excess: Contrast) -> str:
    return _interval(excess.difference, excess.low, excess.high)


def _largest_effect(effect: Contrast | None) -> float:
    return 0.0 if effect is None else max(abs(effect.low or 0.0), abs(effect.high or 0.0))
