"""A comparison of curves as Markdown, for pull requests and step summaries."""

from collections.abc import Iterable

from rlaudit.printable import printable
from rlaudit.report import curves_words as words
from rlaudit.report.markdown_escaped import cell, escaped
from rlaudit.report.report_format import Document


def render(document: Document, width: int | None) -> str:
    """The same parts as the text report."""
    document = printable(dict(document))
    metrics = words.compared(document)
    parts = [
        f"# {escaped(words.headline(document))}",
        _list(words.runs(document)),
        f"## Order: {document['curves']['order']['precedence']}",
        _list(words.order(document)),
    ]
    if metrics:
        parts += ["## Metrics", _table(words.HEADER, words.rows(document))]
        parts += [_list(f"{metric['name']}: {'. '.join(words.details(metric))}" for metric in metrics)]
    if words.problems(document):
        parts += ["## Not used", _list(words.problems(document))]
    parts += ["## Not seen", _list(document["not_seen"]), "## Method", _list(words.method(document))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(cell(one) for one in line) + " |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
