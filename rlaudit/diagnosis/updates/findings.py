"""The findings of a judged run, a sentence each: what serves wrong weights or loses requests, and what to call instead.

An error is something that an RL run would train on without noticing. A warning would be noticed, late. A note is a fact
about a release that a caller has to know. The result of the stale-KV protocol is stated once for each engine start,
with the weakest of its figures, so that no statement is stronger than any case behind it.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.parts import Parts
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.layers import Verdict
from rlaudit.settings.trainer_facts import PauseMode
from rlaudit.severity import Severity
from rlaudit.statistics.estimate import figure
from rlaudit.statistics.measurement.contrast import Contrast

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


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
    of_starts = [
        finding
        for of_start in grouped([case for case in cases if case.ran], lambda case: case.start).values()
        for finding in _stale_kv_findings(of_start)
    ]
    of_cases = [finding for judged in cases for finding in _case_findings(judged)]
    for finding in [*of_starts, *_flight_findings(cases), *_part_findings(cases), *of_cases]:
        findings.setdefault((finding.name, finding.message), finding)
    return tuple(sorted(findings.values(), key=lambda finding: -finding.severity.rank))


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by this key, in order."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _case_findings(judged: JudgedCase) -> Iterator[UpdateFinding]:
    at, where = f"{judged.start}, {judged.name}", judged.where
    if judged.problem is not None:
        if judged.unsupported:
            message = f"vLLM {judged.version}, {judged.loading}: {judged.problem}"
            yield UpdateFinding("refused", NOTE, where, message)
        else:
            yield UpdateFinding("case-not-run", WARNING, where, f"{at}: {judged.problem}")
        return
    if judged.continuity is not None and judged.continuity.verdict is Verdict.MISMATCH:
        yield UpdateFinding("flight-broken", ERROR, where, f"{at}: {judged.continuity.because}")
    for who, count in (("in flight", judged.in_flight), ("submitted around the update", judged.around)):
        if not count.in_order:
            yield UpdateFinding("requests-lost", ERROR, where, f"{at}: of the requests {who}, {_losses(count)}")
    if judged.mode is PauseMode.ABORT and judged.in_flight.aborted:
        twice = judged.repeated
        repeated = f"; the last output of {twice} repeats logprobs that came before: do not append them"
        yield UpdateFinding(
            "requests-aborted",
            NOTE,
            where,
            f"vLLM {judged.version}: mode=abort ended {judged.in_flight.aborted} of {judged.in_flight.submitted} "
            "requests in flight; their tokens are returned and the caller has to submit the rest again"
            f"{repeated if twice else ''}",
        )


def _stale_kv_findings(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield whether new requests are served old keys and values by one engine start."""
    tested = [(case, case.staleness) for case in cases if case.staleness is not None]
    excesses = [(case, stale, stale.excess) for case, stale in tested if stale.excess is not None]
    found = [of_case for of_case in excesses if of_case[1].found]
    clean = [of_case for of_case in excesses if of_case[1].verdict is Verdict.MATCH]
    if found:
        judged, stale, excess = min(found, key=lambda of_case: of_case[2].low or 0.0)
        yield UpdateFinding(
            "stale-kv",
            ERROR,
            judged.where,
            f"{judged.start}: new requests are served keys and values of the old weights with "
            f"{sequences([case for case, _, _ in found])}",
            f"they add at least {_added(excess)} nats of k3 in each, a noise control at most "
            f"{max(_largest_effect(of_case.control) for _, of_case, _ in found):.1g}; "
            f"{stale.cached_tokens} prompt tokens came from the cache",
            "another name for each adapter, or a reset of the prefix cache with it"
            if judged.of_adapter
            else "clear_cache=True with the pause, or prefix caching off, or a cache salt per version",
        )
    if clean:
        judged, _, excess = max(clean, key=lambda of_case: of_case[2].high or 0.0)
        yield UpdateFinding(
            "no-stale-kv",
            NOTE,
            judged.where,
            f"{judged.start}: new requests get nothing stale with "
            f"{sequences([case for case, _, _ in clean])} (added k3 at most {_added(excess)}, "
            f"{max(stale.cached_tokens for _, stale, _ in clean)} prompt tokens from the cache)",
        )
    for judged, stale in tested:
        if stale.verdict is Verdict.INCONCLUSIVE:
            text = f"{judged.start}, {judged.name}: {stale.because}"
            yield UpdateFinding(
                "stale-kv-undecided", WARNING, judged.where, text, "undecided", "more prompts (--prompts, --samples)"
            )


def _flight_findings(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield whether requests in flight continue with old keys and values after the update, once for each release."""
    old = [
        (case, stale.flight)
        for case in cases
        if case.ran and not case.of_adapter and (stale := case.staleness) is not None
        if stale.flight is not None and stale.flight.low is not None and stale.flight_margin is not None
        if stale.flight.low > stale.flight_margin
    ]
    for version, measured in grouped(old, lambda of_case: of_case[0].version).items():
        judged, flight = max(measured, key=lambda of_case: of_case[1].value or 0.0)
        flights = [case for case, _ in measured]
        lagged = next((lag.trainer_weights.get("k3") for lag in judged.lags if lag.lag == 1), None)
        lag = "" if lagged is None else f"; lag gives {figure(lagged.value, lagged.low, lagged.high)}"
        levels = dict.fromkeys(f"{factor}={level}" for case in flights for factor, level in case.levels.items())
        way_out = (
            "V0 cannot compute them again: let requests finish before the update"
            if judged.engine == "V0"
            else "clear_cache=True computes them again"
        )
        k3 = figure(flight.value, flight.low, flight.high)
        yield UpdateFinding(
            "flight-on-old-keys",
            WARNING,
            judged.where,
            f"vLLM {version}, {', '.join(levels)}: requests in flight go on with old keys and values with "
            f"{sequences(flights)}",
            f"k3 of their later tokens under the new weights {k3}{lag}",
            f"{way_out}; to keep them, as PipelineRL does, is a choice to correct for",
        )


def _part_findings(cases: Sequence[JudgedCase]) -> Iterator[UpdateFinding]:
    """Yield the same part of one release that stays old by several paths, once."""
    unclear = [
        (case, case.parts)
        for case in cases
        if case.ran and case.parts is not None
        if case.parts.verdict in (Verdict.MISMATCH, Verdict.INCONCLUSIVE)
    ]
    # A matrix has one engine for each level of a release: a part that is old in one is old in all.
    same = grouped(unclear, lambda read: (read[0].version, read[0].of_adapter, read[1].because))
    for (version, of_adapter, because), members in same.items():
        judged, parts = members[0]
        paths = ", ".join(dict.fromkeys(case.loading for case, _ in members))
        yield UpdateFinding(
            "part-not-updated",
            ERROR if parts.verdict is Verdict.MISMATCH else WARNING,
            judged.where,
            f"vLLM {version}, loading by {paths}: {because}",
            parts.sure,
            "a new number for each adapter, or load_inplace" if of_adapter else _next_step(parts),
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
    for case in cases:
        if case.of_adapter or case.mode is PauseMode.NONE:
            modes_by_name.setdefault(case.name, [])
        else:
            modes = modes_by_name.setdefault(case.caching, [])
            modes += [case.mode] if case.mode not in modes else []
    return "; ".join(f"mode={'|'.join(modes)}, {name}" if modes else name for name, modes in modes_by_name.items())


def _added(excess: Contrast) -> str:
    return figure(excess.difference, excess.low, excess.high)


def _largest_effect(effect: Contrast | None) -> float:
    return 0.0 if effect is None else max(abs(effect.low or 0.0), abs(effect.high or 0.0))
