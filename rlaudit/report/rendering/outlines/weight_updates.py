"""The report of an audit of weight updates: what was found, the matrix, lags, what each way of loading reaches."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlaudit.diagnosis.updates.judge import JudgedCase
from rlaudit.diagnosis.updates.requests import RequestCount
from rlaudit.layers import Layer, Verdict
from rlaudit.report.figures import damaged, difference, interval
from rlaudit.report.rendering.measured_on import measured_on
from rlaudit.report.rendering.outline import (
    COST,
    Brief,
    Findings,
    Indents,
    Outline,
    Prose,
    Section,
    Table,
    listed,
    not_seen,
    verdicts,
)
from rlaudit.severity import Severity
from rlaudit.text.counted import counted

if TYPE_CHECKING:
    from rlaudit.report.report import Report

STALE = {
    Verdict.MATCH: "none",
    Verdict.MISMATCH: "STALE",
    Verdict.INCONCLUSIVE: "unclear",
    Verdict.NOT_TESTED: "not tested",
}
SEQUENCES = "Sequences of calls (k3 in nats; added: k3 of new requests beyond that with an empty cache)"
CLEAN = {True: "yes", False: "no", None: ""}


def outline(report: "Report") -> Outline:
    """Return the outline, in reading order."""
    cases = report["weight_updates"].cases
    return Outline(
        f"Weight updates in vLLM {', '.join(dict.fromkeys(case.version for case in cases))}",
        [
            Section("to-use", "Which updates are right", [Prose(report["weight_updates"].to_use)], leads=True),
            verdicts(report),
            Section("findings", "What was found", [Findings(report["findings"])] if report["findings"] else []),
            _table("sequences", SEQUENCES, _sequences(cases)),
            _table("lag-table", "Tokens in flight by version lag", _lags(cases)),
            listed("updated", "What is updated", _parts(cases), mark=""),
            listed("transports", "How the weights came", _transports(cases), mark=""),
            not_seen(report, mark=""),
            listed("cost", COST, [_cost(report)], mark=""),
            Section("in-short", "In short", [_in_short(report)], closes=True, terminal_only=True),
        ],
        lead=report.get("description", ""),
        facts=[f"{counted(len(cases), 'case')} on {counted(len({case.start for case in cases}), 'engine')}"],
        about=measured_on(report),
        indents=Indents(line=2, table=2),
        pictured=frozenset(),
    )


def _table(name: str, title: str, rows: Sequence[Sequence[str]]) -> Section:
    return Section(name, title, [Table(rows[0], rows[1:])] if len(rows) > 1 else [])


def _in_short(report: "Report") -> Brief:
    """Return the answer, the verdict, and every error and warning."""
    layer = next(layer for layer in report["layers"] if layer.layer == Layer.INFERENCE_PATH)
    serious = [finding for finding in report["findings"] if finding.severity != Severity.NOTE]
    return Brief(
        [
            *((1, sentence) for sentence in report["weight_updates"].to_use),
            (1, f"{layer.layer} {layer.verdict.upper()}: {layer.because}"),
            *((1, f"{finding.severity} {finding.rule}: {finding.message}") for finding in serious),
        ]
    )


def _cost(report: "Report") -> str:
    cost = report["weight_updates"].cost
    line = f"{cost.seconds:.0f} s, {cost.cells_run} cells run, {cost.cells_kept} reused from an earlier run"
    return f"{line}; {damaged(cost.damaged)}" if cost.damaged else line


def _sequences(cases: Sequence[JudgedCase]) -> list[list[str]]:
    """Return the matrix: after each sequence of calls, what became of requests and which weights tokens came from."""
    rows = [["engine", "sequence", "in flight", "others", "cached", "stale KV", "added k3", "flights after", "clean"]]
    for case in cases:
        stale = case.staleness
        if case.problem or stale is None:
            old = case.parts.because if case.parts else "not judged"
            rows.append([case.start, case.name, case.problem or old, *[""] * 6])
            continue
        rows.append(
            [
                case.start,
                case.name,
                _requests(case.in_flight),
                _requests(case.around),
                str(stale.cached_tokens),
                STALE[stale.verdict],
                difference(stale.excess),
                interval(stale.flight),
                CLEAN[case.clean],
            ]
        )
    return rows


def _lags(cases: Sequence[JudgedCase]) -> list[list[str]]:
    """Return the tokens in flight by the number of updates since they were sampled, and the effect on the objective."""
    header = ["engine", "sequence", "lag", "tokens", "k3, right weights", "k2, trainer's weights", "clipped"]
    return [
        header,
        *(
            [
                case.start,
                case.name,
                str(group.lag),
                str(group.tokens),
                interval(group.right_weights.get("k3")),
                interval(group.trainer_weights.get("k2")),
                interval(group.trainer_weights.get("ppo_clip_fraction")),
            ]
            for case in cases
            for group in case.lags
        ),
    ]


def _parts(cases: Sequence[JudgedCase]) -> list[str]:
    """Return which parameters each way of loading reaches, for every case that was read back."""
    return [
        f"{case.start}, {case.name if case.of_adapter else f'loading by {case.path}'}: "
        f"{case.parts.because}. {case.parts.sure}"
        for case in cases
        if case.parts
    ]


def _transports(cases: Sequence[JudgedCase]) -> list[str]:
    """Return a line for each transport of weights, with the engine starts that used it."""
    starts: dict[str, list[str]] = {}
    for case in cases:
        transport = case.transport
        if transport and case.start not in starts.setdefault(transport, []):
            starts[transport].append(case.start)
    return [f"{transport}: {'; '.join(names)}" for transport, names in starts.items()]


def _requests(count: RequestCount) -> str:
    return ", ".join(f"{number} {end}" for end, number in count.ends.items()) or "none"
