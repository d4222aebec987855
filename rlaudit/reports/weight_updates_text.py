"""A weight-update audit as text: what was found, the matrix, lags, what each path updates, and the calls to use."""

import textwrap
from collections.abc import Sequence

from rlaudit.reports.report_format import Document

MARKS = {"match": "none", "mismatch": "STALE", "inconclusive": "unclear", "not tested": "not tested"}


def render(document: Document, width: int | None = None) -> str:
    """Plain lines. On a terminal of `width` columns sentences are broken; tables and code never are."""
    about = document["weight_updates"]
    lines = [document["description"], ""]
    lines += _sentences("Findings", _findings(document["findings"]), width)
    lines += _section("Sequences of calls", _matrix(about["cases"]))
    lines += _section("Tokens by version lag (k3 in nats)", _lags(about["cases"]))
    lines += _sentences("What is updated", _parts(about["cases"]), width)
    lines += _section("Stale keys and values by distance from the cached blocks (k3)", _decay(about["cases"]))
    lines += _sentences("Updates that had to fail", _faults(about["cases"]), width)
    for one in about["recommendations"]:
        title = f"Calls to use, vLLM {one['version']} ({one['levels']})"
        lines += [*_sentences(title, [one["because"]], width)[:-1], ""]
        lines += [*(f"    {row}" for row in (one["code"] or "").splitlines()), ""]
    lines += _sentences("Not seen", document["not_seen"], width)
    cost = about["cost"]
    lines.append(f"{cost['seconds']:.0f} s, {cost['cells_run']} cells run, {cost['cells_kept']} kept")
    return "\n".join(lines) + "\n"


def _sentences(title: str, rows: Sequence[str], width: int | None) -> list[str]:
    if width is not None:
        room = max(40, width - 2)
        rows = [part for row in rows for part in textwrap.wrap(row, room, subsequent_indent="    ") or [""]]
    return _section(title, rows)


def _findings(found: Sequence[Document]) -> list[str]:
    lines = []
    for one in found:
        lines.append(f"{one['severity']:<8} {one['rule']}: {one['message']}")
        if one["confirm"]:
            lines.append(f"{'':<8} reproduce: {one['confirm']}")
    return lines


def _section(title: str, rows: Sequence[str]) -> list[str]:
    return [title, *(f"  {row}" for row in rows), ""] if rows else []


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def _matrix(cases: Sequence[Document]) -> list[str]:
    rows = [
        ["engine", "sequence", "in flight", "after it", "stale KV", "excess k3", "k3 of flights after", "clean"],
    ]
    for case in cases:
        if case["kind"] not in ("matrix", "in a row"):
            continue
        stale = case["staleness"]
        if case["problem"] or stale is None:
            rows.append([case["start"], case["name"], case["problem"] or "not judged", "", "", "", "", ""])
            continue
        rows.append(
            [
                case["start"],
                case["name"],
                _requests(case["in_flight"]),
                _requests(case["around"]),
                MARKS[stale["verdict"]],
                _interval(stale["excess"], "difference"),
                _interval(stale["flight"]),
                {True: "yes", False: "no", None: ""}[case["clean"]],
            ]
        )
    return _columns(rows) if len(rows) > 1 else []


def _requests(count: Document) -> str:
    said = [f"{count[name]} {name}" for name in ("completed", "aborted", "truncated", "duplicated", "lost", "failed")]
    leaked = [f"{count['leaked_tokens']} tokens leaked"] if count["leaked_tokens"] else []
    return ", ".join([words for words in said if not words.startswith("0 ")] + leaked) or "none"


def _lags(cases: Sequence[Document]) -> list[str]:
    rows = [["engine", "sequence", "lag", "tokens", "k3, right weights", "k3, trainer's weights", "clipped"]]
    for case in cases:
        rows += [
            [
                case["start"],
                case["name"],
                str(group["lag"]),
                str(group["tokens"]),
                _interval(group["right_weights"].get("k3")),
                _interval(group["trainer_weights"].get("k3")),
                _interval(group["trainer_weights"].get("ppo_clip_fraction")),
            ]
            for group in case["lags"]
        ]
    return _columns(rows) if len(rows) > 1 else []


def _parts(cases: Sequence[Document]) -> list[str]:
    return [
        f"{case['start']}, {case['path']}, {case['name']}: {case['parts']['verdict']}: {case['parts']['because']}"
        if case["parts"]
        else f"{case['start']}, {case['path']}: refused: {case['problem']}"
        for case in cases
        if case["parts"] or (case["kind"] in ("path", "planted") and case["problem"])
    ]


def _decay(cases: Sequence[Document]) -> list[str]:
    found = [case for case in cases if case["staleness"] and case["staleness"]["verdict"] == "mismatch"]
    return [
        f"{case['start']}, {case['name']}: "
        + "; ".join(f"{one['tokens_from_cache']}: {_interval(one)}" for one in case["staleness"]["decay"])
        for case in found
    ]


def _faults(cases: Sequence[Document]) -> list[str]:
    lines = []
    for case in cases:
        fault = case["fault"]
        if fault is None:
            continue
        refused = f"refused ({fault['refused']})" if fault["refused"] else "not refused"
        if case["name"] == "killed":
            refused = "; ".join(fault["said"]) or "nothing was said"
        healthy = {True: "check_health() passes", False: "check_health() raises", None: "health not asked"}
        recovers = {True: "a whole update brings it back", False: "it does not come back", None: ""}
        parts = [refused, healthy[fault["healthy"]], recovers[fault["recovers"]], _requests(case["in_flight"])]
        lines.append(f"{case['start']}: {'; '.join(part for part in parts if part)}")
    return lines


def _interval(found: Document | None, key: str = "value") -> str:
    if found is None or found[key] is None:
        return "-"
    if found["low"] is None:
        return f"{found[key]:.2g}"
    return f"{found[key]:.2g} [{found['low']:.2g}, {found['high']:.2g}]" + ("" if found["reliable"] else "?")
