"""The pictures of a report as Markdown: what each shows, and its numbers as a table."""

from collections.abc import Sequence

from rlaudit.printable import printable
from rlaudit.report.markdown_escaped import escaped, table
from rlaudit.report.pictures_of import pictures_of
from rlaudit.report.report_format import Document

# Longer tables are the JSON report's to carry: a pull request cuts comments at 65 536 characters.
LONGEST = 60


def render(document: Document) -> str:
    """Nothing for a document without pictures."""
    drawn, missing = pictures_of(printable(dict(document)))
    parts = []
    for one in drawn:
        parts += [
            f"### {escaped(one.full_title)}",
            escaped(one.caption),
            table(one.table.header, _thinned(one.table.rows)),
        ]
    if drawn:
        parts.insert(0, "## Figures")
    if missing:
        parts += ["## Not drawn", "\n".join(f"- {escaped(one.title)}: {escaped(one.reason)}" for one in missing)]
    return "\n\n".join(parts) + "\n" if parts else ""


def _thinned(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Every nth row, with the last."""
    step = -(-len(rows) // LONGEST) or 1
    kept = list(rows[::step])
    return kept if not rows or kept[-1] is rows[-1] else [*kept, rows[-1]]
