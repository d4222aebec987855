"""A self-test as Markdown."""

from collections.abc import Sequence

from rlaudit.printable import printable
from rlaudit.report import selftest_words as words
from rlaudit.report.markdown_escaped import cell, escaped
from rlaudit.report.report_format import Document


def render(document: Document) -> str:
    """The same parts as the text report."""
    document = printable(dict(document))
    parts = [f"# {escaped(words.headline(document))}", _table(words.CELLS, words.cells(document))]
    if words.targets(document):
        parts.append(_table(words.TARGETS, words.targets(document)))
    parts += [_list("Below their target", words.missed(document)), _list("Not seen", document["not_seen"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(header), ["---"] * len(header), *([cell(one) for one in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _list(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {escaped(line)}" for line in lines) if lines else ""
