"""A comparison or a diagnosis as text: the verdict of each layer first, then the figures behind it."""

import textwrap
from collections.abc import Iterable

from rlaudit.printable import printable
from rlaudit.report import comparison_words as words
from rlaudit.report.report_format import Document

COLOURS = {"match": "32", "mismatch": "1;31", "inconclusive": "33", "not tested": "2"}
BOLD, DIM = "1", "2"


def render(document: Document, width: int | None) -> str:
    """Plain lines when piped; colours and line breaks for a terminal."""
    document = printable(dict(document))
    page = _Page(width)
    page.line(words.headline(document), code=BOLD)
    for number, layer in enumerate(document["layers"], start=1):
        page.line("")
        page.line(f"{number}. {layer['layer']}  {words.layer_title(layer)}", code=COLOURS[layer["verdict"]])
        for label, sentence in words.layer_lines(layer):
            page.line(f"{label} {sentence}", indent=3)
    for one in document.get("comparisons", []):
        page.section(one["name"], words.about(one))
        page.table(words.figures(one))
        if one["faults"]["count"]:
            page.section("Faults", words.faults(one))
    if document["command"] == "diagnose":
        page.section("Read", [f"{one['path']}: {one['command']}" for one in document["sources"]])
    page.section("Not seen", [f"- {line}" for line in document["not_seen"]])
    return page.text()


class _Page:
    def __init__(self, width: int | None) -> None:
        self.width, self.written = width, list[str]()

    def line(self, text: str, indent: int = 0, code: str = "") -> None:
        """A sentence, broken on a terminal."""
        room = None if self.width is None else max(self.width - indent, 20)
        for part in [text] if room is None else textwrap.wrap(text, room) or [""]:
            coloured = f"\x1b[{code}m{part}\x1b[0m" if self.width is not None and code else part
            self.written.append(" " * indent * bool(part) + coloured)

    def section(self, title: str, sentences: Iterable[str]) -> None:
        """A title and its lines; nothing where there are none."""
        lines = list(sentences)
        if not lines:
            return
        self.line("")
        self.line(title, code=BOLD)
        for sentence in lines:
            self.line(sentence, indent=3)

    def table(self, rows: list[tuple[str, str]]) -> None:
        """Titles and values in two columns."""
        wide = max((len(title) for title, _ in rows), default=0)
        for title, value in rows:
            self.line(f"{title.ljust(wide)}  {value}", indent=3)

    def text(self) -> str:
        """The page."""
        return "\n".join(line.rstrip() for line in self.written) + "\n"
