"""The parts that sections are built from: tables, lists, code, and tables that open below a picture."""

from collections.abc import Iterable, Sequence

from rlaudit.report.html.markup import Markup, element, joined

# Signs of a cell that is a figure and must not break; longer ones are sentences.
FIGURE = 34


def table(header: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> Markup:
    """A table that scrolls by itself where the page is narrower, by keyboard too. The first cell names its row."""
    head = element("thead", element("tr", (element("th", name, scope="col") for name in header)))
    body = element("tbody", (_row(row) for row in rows))
    return element("div", element("table", head, body), class_="scroll", tabindex="0", role="region", aria_label=label)


def _row(row: Sequence[str]) -> Markup:
    first, *others = row
    name = element("th", first, scope="row", class_="name" if len(first) <= FIGURE else None)
    return element("tr", name, (element("td", cell, class_=_kind(cell)) for cell in others))


def _kind(cell: str) -> str | None:
    if len(cell) > FIGURE:
        return "text"
    return "figure" if any(sign.isdigit() for sign in cell) else None


def listed(lines: Iterable[str]) -> Markup:
    """A list."""
    return element("ul", (element("li", line) for line in lines), class_="plain")


def code(text: str) -> Markup:
    """A block of code, as it is to be pasted."""
    return element("pre", element("code", text), tabindex="0")


def paragraphs(lines: Iterable[str]) -> Markup:
    """A paragraph each."""
    return joined(element("p", line) for line in lines)


def folded(title: str, *content: Markup) -> Markup:
    """Something that opens when asked."""
    return element("details", element("summary", title), *content)
