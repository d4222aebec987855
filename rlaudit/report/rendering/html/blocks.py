"""The blocks of a report as HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from rlaudit.layers import Judgement, Verdict
from rlaudit.report.rendering.html.markup import Markup, element, joined
from rlaudit.report.rendering.outline import (
    Block,
    Brief,
    Code,
    Entries,
    Findings,
    Folded,
    Lines,
    Prose,
    Table,
    Verdicts,
)
from rlaudit.report.rendering.statements import fix_line, location

# The most signs of a cell that is a figure and must not break; longer cells are sentences.
FIGURE = 34
SIGNS = {
    Verdict.MATCH: "✓", Verdict.NOTHING_FOUND: "○", Verdict.MISMATCH: "✗", Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_TESTED: "–",
}  # fmt: skip
FINDING = ("rule", "severity", "where", "what", "fix", "confirm")


@dataclass(frozen=True)
class Shown:
    """A section of the page."""

    name: str  # of letters, digits and hyphens, unique in the page
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
            return listed(f"{name}: {'. '.join(sentences)}" for name, sentences in entries)
        case Prose(lines):
            return joined(element("p", arrow(line)) for line in lines)
        case Table(header, rows, title):
            return table(header, rows, title or "Table")
        case Code(code):
            return element("pre", element("code", code), tabindex="0")
        case Verdicts(layers):
            return element("div", map(_card, count(1), layers), class_="layers")
        case Findings(findings):
            rows = [
                [finding.rule, finding.severity, location(finding.location), finding.message,
                 fix_line(finding.fix) if finding.fix is not None else "",
                 "; ".join(part for part in (finding.confirm, finding.look) if part)]
                for finding in findings
            ]  # fmt: skip
            return table(FINDING, rows, "Findings")
        case Folded(summary, inner):
            return folded(summary, _drawn(inner))
        case Brief():
            return Markup("")


def _card(number: int, layer: Judgement) -> Markup:
    verdict = layer.verdict
    sign = element("span", f"{SIGNS[verdict]} {verdict}", class_="verdict")
    labelled = [("Next", layer.next), ("Wrong if", layer.falsifier)]
    terms = [joined(element("dt", label), element("dd", arrow(text))) for label, text in labelled if text]
    return element(
        "section",
        element("h3", f"{number}. {layer.layer.capitalize()}", sign),
        element("p", arrow(layer.cause), class_="cause") if layer.cause else Markup(""),
        element("p", arrow(layer.because)),
        element("dl", terms) if terms else Markup(""),
        folded(f"Evidence ({len(layer.evidence)})", listed(layer.evidence)) if layer.evidence else Markup(""),
        class_=f"layer {verdict.replace(' ', '-')}",
    )


def arrow(text: str) -> str:
    """Write an arrow as one sign: one of two signs could be cut at the end of a line."""
    return text.replace(" -> ", " → ")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> Markup:
    """Return a table that scrolls if the page is narrower, by keyboard too. The first cell of a row names it."""
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
    return element("ul", (element("li", arrow(line)) for line in lines), class_="plain")


def folded(title: str, *content: Markup) -> Markup:
    """Return content that opens on a click on its title."""
    return element("details", element("summary", title), *content)
