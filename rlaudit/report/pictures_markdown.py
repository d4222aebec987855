"""The pictures of a report as Markdown: what each shows, and its numbers as a table."""

from collections.abc import Sequence

from rlaudit.printable import printable
from rlaudit.report.markdown_escaped import cell, escaped
from rlaudit.report.picture import Table
from rlaudit.report.pictures_of import pictures_of
from rlaudit.report.report_format import Document

# Longer tables are the JSON report's to carry: a pull request cuts comments at 65 536 characters.
LONGEST = 60


def render(document: Document) -> str:
    """Nothing for a document without pictures."""
    drawn, missing = pictures_of(printable(dict(document)))
    parts = []
    for one in drawn:
        parts += [f"### {escaped(one.full_title)}", escaped(one.caption), _folded(one.table)]
    if drawn:
        parts.insert(0, "## Figures")
    if missing:
        parts += ["## Not drawn", "\n".join(f"- {escaped(one.title)}: {escaped(one.reason)}" for one in missing)]
    return "\n\n".join(parts) + "\n" if parts else ""


def _folded(table: Table) -> str:
    kept = table.rows if len(table.rows) <= LONGEST else _thinned(table.rows)
    written = [[cell(one) for one in row] for row in (table.header, *kept)]
    written.insert(1, ["---"] * len(table.header))
    return "\n".join("| " + " | ".join(line) + " |" for line in written)


def _thinned(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Every nth row, with the last."""
    step = -(-len(rows) // LONGEST)
    kept = list(rows[::step])
    return kept if kept[-1] is rows[-1] else [*kept, rows[-1]]
