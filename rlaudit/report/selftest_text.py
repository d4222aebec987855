"""A self-test in plain text: the confusion matrix, cell by cell, the targets, and every miss."""

from collections.abc import Sequence

from rlaudit.printable import printable
from rlaudit.report import selftest_words as words
from rlaudit.report.report_format import Document


def render(document: Document) -> str:
    """A line each; columns are never broken."""
    document = printable(dict(document))
    lines = [words.headline(document), "", *_columns(words.CELLS, words.cells(document)), ""]
    if words.targets(document):
        lines += [*_columns(words.TARGETS, words.targets(document)), ""]
    lines += [f"below its target: {line}" for line in words.missed(document)]
    return "\n".join([*lines, *document["not_seen"]]) + "\n"


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = [header, *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(header))]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in table]
