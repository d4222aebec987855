"""An inspection as text: each file, what was found there, what moves, and what was not seen."""

import textwrap
from collections.abc import Sequence

from rlaudit.printable import one_line, printable
from rlaudit.report.inspection_words import (
    Row,
    findings_of,
    fix_line,
    location,
    lost,
    moving,
    moving_by_default,
    not_seen_elsewhere,
    summary,
    title,
)
from rlaudit.report.report_format import Document

COLOURS = {"error": "1;31", "warning": "33", "note": "36"}
BOLD, DIM = "1", "2"


def render(document: Document, width: int | None) -> str:
    """Plain lines when piped; colours and line breaks for a terminal."""
    page = _Page(width)
    document = printable(dict(document))
    configs = document.get("configs", ())
    paths = list(dict.fromkeys(config["path"] for config in configs))
    for path in paths:
        page.line(0)
        own = [number for number, config in enumerate(configs) if config["path"] == path]
        for number in own:
            page.line(0, title(configs[number], len(own) > 1), BOLD)
        for finding in findings_of(document, path, paths):
            _finding(page, finding)
        for number in own:
            _moving(page, document, number, len(own) > 1)
            page.list("Written, and without effect", lost(configs[number]))
            page.list("Not seen in this file", configs[number]["not_seen"])
    elsewhere = findings_of(document, None, paths)
    for finding in elsewhere:
        _finding(page, finding)
    header, rows = moving_by_default(document)
    if rows:
        page.line(
            0, f"vLLM {document['versions']['from']} -> {document['versions']['to']}: {document['description']}", BOLD
        )
        page.table(header, rows)
    page.list("Failed", document.get("inspection", {}).get("bugs", ()))
    page.list("Not seen", not_seen_elsewhere(document))
    page.line(0)
    for sentence in summary(document):
        page.line(0, sentence)
    return page.text()


def _finding(page: "_Page", finding: Row) -> None:
    page.line(0)
    severity = page.coloured(finding["severity"], COLOURS[finding["severity"]])
    layer = f" ({finding['layer']})" if finding["layer"] else ""
    page.raw(1, f"{severity} {location(finding['location'])} {finding['rule']}{layer}")
    page.line(3, finding["message"])
    if finding["fix"] is not None:
        page.line(3, f"fix: {fix_line(finding['fix'])}")
    if finding.get("confirm"):
        page.line(3, f"confirm: {finding['confirm']}")


def _moving(page: "_Page", document: Document, number: int, several: bool) -> None:
    header, rows = moving(document, number)
    if rows:
        page.line(0)
        config = document["configs"][number]
        where = f" (line {config['line']})" if several and config["line"] is not None else ""
        page.line(1, f"Settings that move or do not arrive as written{where}", BOLD)
        page.table(header, rows)


class _Page:
    def __init__(self, width: int | None) -> None:
        self.width, self.lines = width, list[str]()

    def coloured(self, text: str, code: str) -> str:
        """The text, coloured on a terminal."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.width is not None else text

    def raw(self, indent: int, text: str) -> None:
        """A line as it is."""
        self.lines.append(" " * indent + text)

    def line(self, indent: int, text: str = "", code: str = "") -> None:
        """A sentence, broken on a terminal."""
        text = one_line(text)
        room = max(20, self.width - indent) if self.width is not None else None
        parts = textwrap.wrap(text, room, break_on_hyphens=False) if room is not None else [text]
        for part in parts or [""]:
            self.raw(indent if part else 0, self.coloured(part, code) if code and part else part)

    def list(self, heading: str, lines: Sequence[str]) -> None:
        """A list under a heading, or nothing."""
        if lines:
            self.line(0)
            self.line(1, heading, BOLD)
            for text in lines:
                self.line(2, f"- {text}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns where they fit; on a narrower terminal each row below its name. Nothing is cut."""
        cells = [[one_line(cell) for cell in row] for row in (header, *rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        if self.width is None or sum(widths) + 2 * len(widths) + 3 <= self.width:
            for number, row in enumerate(cells):
                text = "  ".join(cell.ljust(room) for cell, room in zip(row, widths, strict=True)).rstrip()
                self.raw(3, self.coloured(text, DIM) if number == 0 else text)
            return
        for name, *figures in cells[1:]:
            self.raw(3, name)
            self.line(6, "; ".join(f"{word} {figure}" for word, figure in zip(cells[0][1:], figures, strict=True)))

    def text(self) -> str:
        """All of it."""
        while self.lines and not self.lines[0]:
            del self.lines[0]
        return "".join(f"{line.rstrip()}\n" for line in self.lines)
