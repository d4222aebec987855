"""A weight-update audit as text: the figures first, and at the end what was found, how sure that is, and what next.

The end is what stands on the screen when a run of minutes is over; it is kept under 40 lines.
"""

import textwrap
from collections.abc import Sequence

from rlaudit.printable import printable
from rlaudit.report import weight_updates_words as words
from rlaudit.report.report_format import Document

MOST_LINES = 35


def render(document: Document, width: int | None = None) -> str:
    """Plain lines. On a terminal of `width` columns sentences are broken; tables and code never are."""
    document = printable(dict(document))
    lines = [*_broken([words.headline(document)], width), ""]
    lines += _section("Sequences of calls (k3 in nats)", _columns(words.sequences(document)))
    lines += _section("Tokens in flight by version lag", _columns(words.lags(document)))
    lines += _section("What is updated", words.parts(document), width)
    lines += _section("Stale keys and values by distance from the cached blocks (k3)", _columns(words.decay(document)))
    lines += _section("Stale keys and values over several updates", words.survival(document), width)
    lines += _section("Updates that had to fail", words.faults(document), width)
    for title, because, code in words.calls(document):
        lines += [*_section(title, [because], width)[:-1], *(f"    {row}" for row in code.splitlines()), ""]
    lines += _section("Not seen", document["not_seen"], width)
    lines += _section(words.verdict(document), _conclusions(document), width)
    lines.append(words.cost(document))
    return "\n".join(lines) + "\n"


def _conclusions(document: Document) -> list[str]:
    """Errors and warnings with their figures and the next step, notes in a line each, as many as there is room for."""
    rows: list[str] = []
    left = list(document["weight_updates"]["conclusions"])
    while left:
        one = left[0]
        serious = one["severity"] != "note"
        mine = [f"{one['severity']:<8} {one['rule']}: {one['found']}"]
        if serious:
            again = f"see it again: {one['reproduce']}" if one["reproduce"] else ""
            following = "; ".join(words_ for words_ in (one["next"], again) if words_)
            mine += [f"{'':<8} sure: {one['sure']}"] if one["sure"] else []
            mine += [f"{'':<8} next: {following}"] if following else []
        if len(rows) + len(mine) > MOST_LINES:
            return [*rows, f"and {len(left)} more, in the JSON report"]
        rows += mine
        left.pop(0)
    return rows


def _section(title: str, rows: Sequence[str], width: int | None = None) -> list[str]:
    return [title, *(f"  {row}" for row in _broken(rows, width)), ""] if rows else []


def _broken(rows: Sequence[str], width: int | None) -> Sequence[str]:
    if width is None:
        return rows
    room = max(40, width - 2)
    return [part for row in rows for part in textwrap.wrap(row, room, subsequent_indent="    ") or [""]]


def _columns(rows: words.Table) -> list[str]:
    if len(rows) < 2:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]
