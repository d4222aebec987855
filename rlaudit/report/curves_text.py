"""A comparison of curves as text: what separated and in which order, then what it rests on."""

import textwrap
from collections.abc import Iterable, Sequence

from rlaudit.printable import printable
from rlaudit.report import curves_words as words
from rlaudit.report.report_format import Document

BOLD, RED, DIM = "1", "1;31", "2"


def render(document: Document, width: int | None) -> str:
    """Plain lines when piped; colours and line breaks for a terminal."""
    document = printable(dict(document))
    page = _Page(width)
    page.line(words.headline(document), code=BOLD)
    page.lines(words.runs(document), indent=2)
    page.section("Order: " + document["curves"]["order"]["precedence"], words.order(document))
    metrics = words.compared(document)
    if metrics:
        page.line("")
        page.line("Metrics", code=BOLD)
        page.table(words.HEADER, words.rows(document), [metric["outcome"] == "separated" for metric in metrics])
        page.section("What they are", ())
        for metric in metrics:
            page.line(metric["name"], indent=2)
            page.lines(words.details(metric), indent=6)
    page.section("Not used", words.problems(document))
    page.section("Not seen", document["not_seen"])
    page.section("Method", words.method(document))
    return page.text()


class _Page:
    def __init__(self, width: int | None) -> None:
        self.width, self.written = width, list[str]()

    def coloured(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.width is not None and code else text

    def line(self, text: str, indent: int = 0, code: str = "") -> None:
        """A sentence, broken on a terminal."""
        room = None if self.width is None else max(self.width - indent, 20)
        for part in [text] if room is None else textwrap.wrap(text, room) or [""]:
            self.written.append(" " * indent * bool(part) + self.coloured(part, code))

    def lines(self, sentences: Iterable[str], indent: int) -> None:
        """One line each."""
        for sentence in sentences:
            self.line(sentence, indent)

    def section(self, title: str, sentences: Sequence[str]) -> None:
        """A title and its lines; nothing where there are none and the title stands for them."""
        if not sentences and title.startswith("Not"):
            return
        self.line("")
        self.line(title, code=BOLD)
        self.lines(sentences, indent=2)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool]) -> None:
        """Aligned columns; rows are never cut."""
        widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
        for row, mark in zip([header, *rows], [None, *marked], strict=True):
            text = "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
            self.written.append("  " + self.coloured(text, DIM if mark is None else RED if mark else ""))

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.written)
