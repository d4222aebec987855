"""Text for people: what matters first, then what it rests on, then what was not seen.

On a terminal it is coloured, and no line is wider than the terminal, except code, which is to be pasted. Piped, each
sentence is a line, and a table's row that is too wide for columns is its name and a line.

A picture is a line of blocks for each of its series.
"""

import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rlaudit.layers import Judgement, Verdict
from rlaudit.report.figures import number
from rlaudit.report.rendering.outline import (
    Block,
    Brief,
    Code,
    Entries,
    Findings,
    Folded,
    Indents,
    Lines,
    Outline,
    Prose,
    Section,
    Table,
    Verdicts,
    outline_of,
)
from rlaudit.report.rendering.picture import Picture, pictures_of
from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.report.rendering.statements import fix_line, location
from rlaudit.severity import Severity
from rlaudit.text.printable import one_line, printable

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

BOLD, DIM, RED = "1", "2", "1;31"
VERDICTS = {
    Verdict.MATCH: "32", Verdict.NOTHING_FOUND: "32", Verdict.MISMATCH: RED, Verdict.INCONCLUSIVE: "33",
    Verdict.NOT_TESTED: DIM,
}  # fmt: skip
SEVERITIES = {Severity.ERROR: RED, Severity.WARNING: "33", Severity.NOTE: "36"}
NARROWEST = 20
# The widest row of a table that stays in columns if piped.
WIDEST_PIPED = 160
# If fewer rows of a table fit columns, none is in columns.
FEWEST_IN_COLUMNS = 3
# The end of a long report on one screen: the most lines, the least width, and how many lines a statement may take,
# which is lowered until all fit.
MOST_LINES, NARROWEST_BRIEF = 40, 40
ROOM = (6, 4, 3, 2, 1)
# A series in a line, from its lowest to its highest value.
BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "
INDENT = "   "
NARROWEST_BLOCKS = 24


def render(report: "Report", width: int | None, unfolded: bool = False) -> str:
    """Return the report as text: ANSI colours only for a terminal (`width` given), blocks only if encodable.

    unfolded: whether it has what a page folds.
    """
    outline = outline_of(report)
    page = _Page(width, outline.indents, unfolded)
    page.begin(outline)
    shown = outline.shown(on_terminal=width is not None)
    for section in shown:
        if not section.closes:
            page.section(section)
    if outline.left_out and not unfolded:
        page.line(0, outline.left_out)
    body = page.text()
    if "text" in outline.pictured:
        body += sparklines(report, width) if encodable(sys.stdout.encoding) else ""
    closing = _Page(width, outline.indents, unfolded)
    for section in shown:
        if section.closes:
            closing.section(section)
    end = closing.text()
    return f"{body}\n{end}" if end else body


class _Page:
    def __init__(self, width: int | None, indents: Indents, unfolded: bool) -> None:
        self.width, self.indents, self.unfolded, self.lines = width, indents, unfolded, list[str]()

    def text(self) -> str:
        return "".join(f"{line.rstrip()}\n" for line in self.lines).lstrip("\n")

    def coloured(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.width is not None and code and text else text

    def line(self, indent: int, text: str = "", code: str = "", hanging: int = 0) -> None:
        """Add a sentence, wrapped on a terminal. hanging: how much further its other lines are indented."""
        text = " ".join(map(str.strip, text.splitlines()))
        room = None if self.width is None else max(NARROWEST, self.width - indent)
        parts = [text]
        if room is not None:
            parts = textwrap.wrap(text, room, subsequent_indent=" " * hanging, break_on_hyphens=False) or [""]
        self.lines += [" " * indent + self.coloured(part, code) for part in parts]

    def begin(self, outline: Outline) -> None:
        if outline.headed:
            lead = f"  {outline.lead}" if outline.lead else ""
            self.line(0, outline.title + lead, BOLD)
        for line in outline.about:
            self.line(self.indents.line, line)

    def section(self, section: Section) -> None:
        if not section.gathers and section.title:
            self.heading(section.indent, section.title, *section.also)
        for block in section.blocks:
            if block.title:
                self.heading(self.indents.title, block.title)
            self.block(block)

    def heading(self, indent: int, *titles: str) -> None:
        if self.lines:
            self.line(0)
        for title in titles:
            self.line(indent, title, BOLD)

    def block(self, block: Block) -> None:  # noqa: PLR0912 - a branch for each kind of block
        match block:
            case Lines(lines, _, mark):
                for line in lines:
                    self.line(self.indents.line, mark + line, hanging=len(mark))
            case Entries(entries):
                for name, sentences in entries:
                    self.line(self.indents.line, name)
                    for line in sentences:
                        self.line(self.indents.line + 4, line)
            case Prose(lines):
                self.line(0)
                for line in lines:
                    self.line(0, line)
            case Table():
                self.table(block)
            case Code(code):
                # Never wrapped: it is to be pasted.
                self.lines += [" " * self.indents.table + line for line in code.splitlines()]
            case Verdicts(layers):
                for number, layer in enumerate(layers, start=1):
                    self.layer(number, layer)
            case Findings(findings):
                for finding in findings:
                    self.finding(finding)
            case Brief(statements):
                self.brief(statements)
            case Folded(summary, inner) if self.unfolded:
                self.heading(self.indents.title, summary)
                self.block(inner)
            case Folded():
                pass

    def layer(self, number: int, layer: Judgement) -> None:
        cause = f": {layer.cause}" if layer.cause else ""
        self.line(0)
        self.line(0, f"{number}. {layer.layer}  {layer.verdict.upper()}{cause}", VERDICTS[layer.verdict])
        for label, text in (("because:", layer.because), ("next:", layer.next), ("wrong if:", layer.falsifier)):
            if text:
                self.line(self.indents.line, f"{label} {text}")
        for line in layer.evidence:
            self.line(self.indents.line, f"- {line}")

    def brief(self, statements: Sequence[tuple[int, str]]) -> None:
        """Add all statements so that they fit one screen: the longest are cut, and end with an ellipsis."""
        for room in ROOM:
            lines = [part for indent, statement in statements for part in self.cut(indent, one_line(statement), room)]
            if len(self.lines) + len(lines) <= MOST_LINES:
                break
        self.lines += lines

    def cut(self, indent: int, statement: str, room: int) -> list[str]:
        """Return a statement in at most `room` lines."""
        begin, further = " " * indent, " " * (indent + 2)
        width = max(self.width or NARROWEST, NARROWEST_BRIEF)
        return textwrap.wrap(
            statement, width, initial_indent=begin, subsequent_indent=further, max_lines=room, placeholder=" …"
        )

    def finding(self, finding: "Finding") -> None:
        layer = f" ({finding.layer})" if finding.layer else ""
        severity = finding.severity
        self.line(0)
        first = len(self.lines)
        self.line(1, f"{severity} {location(finding.location)} {finding.rule}{layer}", hanging=2)
        self.lines[first] = self.lines[first].replace(severity, self.coloured(severity, SEVERITIES[severity]), 1)
        self.line(3, finding.message)
        if finding.fix is not None:
            self.line(3, f"fix: {fix_line(finding.fix)}")
        if finding.confirm:
            # Never wrapped: it is to be pasted.
            self.lines.append(f"   confirm: {finding.confirm}")
        if finding.look:
            self.line(3, f"check: {finding.look}")

    def table(self, table: Table) -> None:
        """Add the rows that fit as columns. Figures of a wider row stand below its name: never half a figure."""
        header = [one_line(name) for name in table.header[: table.on_terminal]]
        rows = [[one_line(cell) for cell in row[: len(header)]] for row in table.rows]
        indent = self.indents.table
        shown = [header] if table.headed else []
        fitting = _fitting(shown, rows, (WIDEST_PIPED if self.width is None else self.width) - indent)
        widths = _widths([*shown, *(rows[index] for index in fitting)], len(header))
        if table.headed and fitting:
            self.lines.append(" " * indent + self.coloured(_columns(header, widths), DIM))
        for index, row in enumerate(rows):
            code = RED if index in table.marked else ""
            if index in fitting:
                self.lines.append(" " * indent + self.coloured(_columns(row, widths), code))
                continue
            name, *figures = row
            self.line(indent, name, code)
            # A row that ends early has no figures, and says why in their place.
            labelled = table.headed and len(figures) == len(header) - 1
            columns = zip(header[1:], figures, strict=False)
            parts = [f"{column} {figure}" if labelled else figure for column, figure in columns if figure]
            self.line(indent + 3, "; ".join(parts))


def _fitting(header: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], room: int) -> set[int]:
    """Return the rows that fit in columns: the widest are left out, and all if fewer than FEWEST_IN_COLUMNS remain."""
    columns = max(map(len, (*header, *rows)), default=0)
    fitting = set(range(len(rows)))
    while len(fitting) >= FEWEST_IN_COLUMNS or len(fitting) == len(rows):
        widths = _widths([*header, *(rows[index] for index in fitting)], columns)
        if sum(widths) + 2 * len(widths) <= room or not fitting:
            return fitting
        fitting.remove(max(fitting, key=lambda index: max(map(len, rows[index]), default=0)))
    return set()


def _widths(rows: Sequence[Sequence[str]], columns: int) -> list[int]:
    padded = [[*map(len, row), *[0] * (columns - len(row))] for row in rows]
    return [max(column) for column in zip(*padded, strict=True)]


def _columns(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(room) for cell, room in zip(row, widths, strict=False)).rstrip()


def sparklines(report: "Report", width: int | None) -> str:
    """Draw a report's series as lines of blocks. width: of the terminal; longer series are thinned."""
    drawn, _ = pictures_of(printable(dict(report)))
    lines = [line for picture in drawn for line in _lines(picture, width)]
    return "\n".join(["", *lines]) + "\n" if lines else ""


def _lines(picture: Picture, width: int | None) -> list[str]:
    if not picture.sparklines:
        return []
    names = [one_line(series.name) for series in picture.sparklines]
    room = None if width is None else max(width - len(INDENT), NARROWEST_BLOCKS)
    title = one_line(f"{picture.full_title} ({picture.sparklines[0].ends})")
    lines = [title] if width is None else textwrap.wrap(title, width)
    longest = max(map(len, names))
    scale = [value for series in picture.sparklines for value in series.values if value is not None]
    for name, series in zip(names, picture.sparklines, strict=True):
        numbers = [value for value in series.values if value is not None]
        span = f"{number(min(numbers))} to {number(max(numbers))}" if numbers else "no value"
        before = f"{name.ljust(longest)}  "
        width_of_blocks = None if room is None else room - len(before) - len(span) - 2
        if room is not None and width_of_blocks is not None and width_of_blocks < NARROWEST_BLOCKS:
            lines += [INDENT + part for part in textwrap.wrap(f"{name}  {span}", room)]
            before, span, width_of_blocks = "", "", room
        values = series.values if width_of_blocks is None else _thinned(series.values, width_of_blocks)
        blocks = sparkline(values, scale)
        lines.append(f"{INDENT}{before}{blocks}  {span}".rstrip())
    return [*lines, ""]


def _thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    return list(values[:: -(-len(values) // most)])


def sparkline(values: Sequence[float | None], scale: Sequence[float]) -> str:
    """Return one character for each value, a blank if it is missing. scale: the values of all lines of a picture."""
    low, high = min(scale, default=0.0), max(scale, default=0.0)
    step = (high - low) / len(BLOCKS) or 1.0
    highest = len(BLOCKS) - 1
    return "".join(GAP if value is None else BLOCKS[min(int((value - low) / step), highest)] for value in values)


def encodable(encoding: str | None) -> bool:
    """Return whether a stream of this encoding can carry the blocks."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


render_in_full = partial(render, unfolded=True)
FORMAT = ReportFormat("text", render, in_full=render_in_full)
