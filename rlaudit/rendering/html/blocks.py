"""The blocks of a report as HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rlaudit.layers import Judgement, Verdict
from rlaudit.rendering.html.markup import Markup, element, joined
from rlaudit.rendering.outline import Block, Brief, Code, Entries, Findings, Folded, Lines, Prose, Table, Verdicts
from rlaudit.rendering.statements import fix_line, location

# Signs of a cell that is a figure and must not break; longer ones are sentences.
FIGURE = 34
SIGNS = {Verdict.MATCH: "✓", Verdict.MISMATCH: "✗", Verdict.INCONCLUSIVE: "?", Verdict.NOT_TESTED: "–"}
FINDING = ("rule", "severity", "where", "what", "fix", "confirm")


@dataclass(frozen=True)
class Shown:
    """A section of the page. name: of letters, digits and hyphens, unique in the page."""

    name: str
    title: str
    content: Markup


def titled(block: Block, level: str = "h3") -> Markup:
    """Return the block below its title."""
    heading = element(level, arrow(block.title)) if block.title else Markup("")
    return joined(heading, _drawn(block))


def _drawn(block: Block) -> Markup:  # noqa: PLR0911 - one for each kind of block
    match block:
        case Lines(lines):
            return listed(lines)
        case Entries(entries):
            return listed(f"{name}: {'. '.join(said)}" for name, said in entries)
        case Prose(lines):
            return joined(element("p", line) for line in lines)
        case Table(header, rows, title):
            return table(header, rows, title or "Table")
        case Code(code):
            # As it is to be pasted.
            return element("pre", element("code", code), tabindex="0")
        case Verdicts(layers):
            return element("div", (_card(number, one) for number, one in enumerate(layers, start=1)), class_="layers")
        case Findings(findings):
            rows = [
                [one.rule, one.severity, location(one.location), one.message,
                 fix_line(one.fix) if one.fix is not None else "", one.confirm or ""]
                for one in findings
            ]  # fmt: skip
            return table(FINDING, rows, "Findings")
        case Folded(summary, inner):
            return folded(summary, _drawn(inner))
        case Brief():
            return Markup("")


def _card(number: int, layer: Judgement) -> Markup:
    verdict = layer.verdict
    sign = element("span", f"{SIGNS[verdict]} {verdict}", class_="verdict")
    said = [("Next", layer.next), ("Refuted by", layer.falsifier)]
    terms = [joined(element("dt", term), element("dd", text)) for term, text in said if text]
    return element(
        "section",
        element("h3", f"{number}. {layer.layer.capitalize()}", sign),
        element("p", layer.cause, class_="cause") if layer.cause else Markup(""),
        element("p", arrow(layer.because)),
        element("dl", terms) if terms else Markup(""),
        folded(f"Evidence ({len(layer.evidence)})", listed(layer.evidence)) if layer.evidence else Markup(""),
        class_=f"layer {verdict.replace(' ', '-')}",
    )


def arrow(text: str) -> str:
    """Write an arrow as one sign: one of two signs could be cut at the end of a line."""
    return text.replace(" -> ", " → ")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> Markup:
    """Return a table that scrolls by itself if the page is narrower, by keyboard too. The first cell names its row."""
    head = element("thead", element("tr", (element("th", name, scope="col") for name in header)))
    body = element("tbody", (_row([*row, *[""] * (len(header) - len(row))]) for row in rows))
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
    """Return a list."""
    return element("ul", (element("li", line) for line in lines), class_="plain")


def folded(title: str, *content: Markup) -> Markup:
    """Something that opens when asked."""
    return element("details", element("summary", title), *content)
