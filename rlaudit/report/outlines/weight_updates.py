"""The report of an audit of weight updates: what was found, the matrix, lags, what each way of loading reaches."""

from collections.abc import Sequence
from typing import Any, Final

from rlaudit.layers import Layer, Verdict
from rlaudit.report.figures import damaged
from rlaudit.report.outline import (
    COST,
    Code,
    Either,
    Entries,
    Indents,
    Outline,
    Section,
    Table,
    listed,
    not_seen,
    verdicts,
)
from rlaudit.report.parts.weight_updates import Conclusion, UpdateCase, UpdateRequests
from rlaudit.report.report import Report

STALE = {
    Verdict.MATCH: "none",
    Verdict.MISMATCH: "STALE",
    Verdict.INCONCLUSIVE: "unclear",
    Verdict.NOT_TESTED: "not tested",
}
CLEAN = {True: "yes", False: "no", None: ""}
ENDS: Final = ("completed", "aborted", "truncated", "duplicated", "lost", "failed")
CONCLUSIONS = ("what", "severity", "found", "how sure", "next", "see it again")
# What was found stands at the end of the text, on the screen when a run of minutes is over.
MOST_LINES = 35


def outline(report: Report) -> Outline:
    """In reading order."""
    cases = report["weight_updates"]["cases"]
    return Outline(
        f"Weight updates in vLLM {', '.join(dict.fromkeys(case['version'] for case in cases))}",
        [
            verdicts(report, page_only=True),
            _table("sequences", "Sequences of calls (k3 in nats)", _sequences(cases)),
            _table("lag-table", "Tokens in flight by version lag", _lags(cases)),
            listed("updated", "What is updated", _parts(cases), mark=""),
            _table("decay", "Stale keys and values by distance from the cached blocks (k3)", _decay(cases)),
            listed("survival", "Stale keys and values over several updates", _survival(cases), mark=""),
            listed("transports", "How the weights came", _transports(cases), mark=""),
            Section("calls", "Calls to use", _calls(report), gathers=True),
            not_seen(report, mark=""),
            listed("cost", COST, [_cost(report)], mark=""),
            Section("conclusions", "What was found", _conclusions(report), gathers=True, closes=True),
        ],
        lead=report.get("description", ""),
        facts=[f"{len(cases)} cases on {len({case['start'] for case in cases})} engines"],
        indents=Indents(line=2, table=2),
        pictured=frozenset({"markdown"}),
    )


def _table(name: str, title: str, rows: Sequence[Sequence[str]]) -> Section:
    return Section(name, title, [Table(rows[0], rows[1:])] if len(rows) > 1 else [])


def _conclusions(report: Report) -> list[Either]:
    """Errors and warnings with their figures and the next step, notes in a line each, as many as there is room for."""
    found = report["weight_updates"]["conclusions"]
    entries = list[tuple[str, Sequence[str]]]()
    for place, one in enumerate(found):
        entry = _entry(one)
        if sum(1 + len(said) for _, said in [*entries, entry]) > MOST_LINES:
            entries.append((f"and {len(found) - place} more, in the JSON report", ()))
            break
        entries.append(entry)
    rows = [
        [one["rule"], one["severity"], one["found"], one["sure"], one["next"], one["reproduce"] or ""] for one in found
    ]
    return [Either(Entries(entries), Table(CONCLUSIONS, rows), _verdict(report))] if found else []


def _entry(one: Conclusion) -> tuple[str, Sequence[str]]:
    again = f"see it again: {one['reproduce']}" if one["reproduce"] else ""
    following = "; ".join(said for said in (one["next"], again) if said)
    labelled = (("sure", one["sure"]), ("next", following)) if one["severity"] != "note" else ()
    return f"{one['severity']} {one['rule']}: {one['found']}", [f"{label}: {said}" for label, said in labelled if said]


def _calls(report: Report) -> list[Code]:
    """What to call on each engine; no code where nothing that was tried is clean."""
    return [
        Code(one["code"] or "", "python", f"Calls to use, vLLM {one['version']} ({one['levels']})", one["because"])
        for one in report["weight_updates"]["recommendations"]
    ]


def _verdict(report: Report) -> str:
    """The layer's verdict in a line."""
    layer = next(layer for layer in report["layers"] if layer["layer"] == Layer.INFERENCE_PATH)
    return f"{layer['layer']}: {layer['verdict'].upper()}: {layer['because']}"


def _cost(report: Report) -> str:
    spent = report["weight_updates"]["cost"]
    said = f"{spent['seconds']:.0f} s, {spent['cells_run']} cells run, {spent['cells_kept']} kept"
    return f"{said}; {damaged(spent['damaged'])}" if spent.get("damaged") else said


def _sequences(cases: Sequence[UpdateCase]) -> list[list[str]]:
    """The matrix: what became of requests, and what the tokens after each sequence of calls were computed from."""
    rows = [["engine", "sequence", "in flight", "others", "cached", "stale KV", "excess k3", "flights after", "clean"]]
    for case in cases:
        if case["kind"] not in ("matrix", "in a row"):
            continue
        stale = case["staleness"]
        if case["problem"] or stale is None:
            rows.append([case["start"], case["name"], case["problem"] or "not judged", *[""] * 6])
            continue
        rows.append(
            [
                case["start"],
                case["name"],
                _requests(case["in_flight"]),
                _requests(case["around"]),
                str(stale["cached_tokens"]),
                STALE[stale["verdict"]],
                _interval(stale["excess"], "difference"),
                _interval(stale["flight"]),
                CLEAN[case["clean"]],
            ]
        )
    return rows


def _lags(cases: Sequence[UpdateCase]) -> list[list[str]]:
    """Tokens in flight by the number of updates since they were sampled, and what that does to the objective."""
    rows = [["engine", "sequence", "lag", "tokens", "k3, right weights", "k2, trainer's weights", "clipped"]]
    for case in cases:
        for group in case["lags"]:
            right, trainer = group["right_weights"], group["trainer_weights"]
            rows.append(
                [
                    case["start"],
                    case["name"],
                    str(group["lag"]),
                    str(group["tokens"]),
                    _interval(right.get("k3")),
                    _interval(trainer.get("k2")),
                    _interval(trainer.get("ppo_clip_fraction")),
                ]
            )
    return rows


def _parts(cases: Sequence[UpdateCase]) -> list[str]:
    """Which parameters each way of loading reaches, a sentence for every case that was read back."""
    said = []
    for case in cases:
        where = f"{case['start']}, loading by {case['path']}"
        planted = f" ({case['name']})" if case["kind"] == "planted" else ""
        if case["kind"] in ("path", "planted") and case["problem"]:
            said.append(f"{where}{planted}: refused. {case['problem']}")
        elif case["parts"]:
            said.append(f"{where}{planted}: {case['parts']['because']}. {case['parts']['sure']}")
    return said


def _decay(cases: Sequence[UpdateCase]) -> list[list[str]]:
    """Stale keys and values by distance: a column for each number of tokens since the cached blocks."""
    judged = [(case, case["staleness"]) for case in cases]
    found = [(case, stale) for case, stale in judged if stale and stale["verdict"] == Verdict.MISMATCH]
    if not found:
        return [[]]
    distances = list(dict.fromkeys(one["tokens_from_cache"] for _, stale in found for one in stale["decay"]))
    rows = [["engine", "sequence", *(f"{name} tokens after" for name in distances)]]
    for case, stale in found:
        figures = {one["tokens_from_cache"]: _interval(one) for one in stale["decay"]}
        rows.append([case["start"], case["name"], *(figures.get(name, "-") for name in distances)])
    return rows


def _transports(cases: Sequence[UpdateCase]) -> list[str]:
    """What brought the weights in each engine start that ran; starts alike in a line."""
    starts: dict[str, list[str]] = {}
    for case in cases:
        told = case.get("transport")
        if told and case["start"] not in starts.setdefault(told, []):
            starts[told].append(case["start"])
    return [f"{told}: {'; '.join(names)}" for told, names in starts.items()]


def _survival(cases: Sequence[UpdateCase]) -> list[str]:
    """How long stale blocks live: the excess after several updates beside the one after a single update."""
    said = []
    for case in cases:
        stale = case["staleness"]
        if case["kind"] != "in a row" or case["problem"] or stale is None:
            continue
        once = next(
            (
                other["staleness"]["excess"]
                for other in cases
                if other["start"] == case["start"] and other["kind"] == "matrix" and other["staleness"]
                if (other["mode"], other["clear_cache"]) == (case["mode"], case["clear_cache"])
            ),
            None,
        )
        said.append(
            f"{case['start']}: after {len(case['updates'])} updates {stale['cached_tokens']} prompt tokens are still "
            f"served from blocks of the first version: excess k3 {_interval(stale['excess'], 'difference')}, "
            f"after one update {_interval(once, 'difference')}"
        )
    return said


def _interval(found: Any, key: str = "value") -> str:
    """A figure with its interval; a question mark where the interval is of too few sequences."""
    if found is None or found[key] is None:
        return "-"
    if found["low"] is None:
        return f"{found[key]:.2g}"
    return f"{found[key]:.2g} [{found['low']:.2g}, {found['high']:.2g}]" + ("" if found["reliable"] else "?")


def _requests(count: UpdateRequests) -> str:
    said = [f"{count[name]} {name}" for name in ENDS if count[name]]
    leaked = [f"{count['leaked_tokens']} tokens leaked"] if count["leaked_tokens"] else []
    return ", ".join(said + leaked) or "none"
