"""The verdict of each layer, in the order in which they must be judged."""

from collections.abc import Mapping
from typing import Any

from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.html.parts import folded, listed
from rlaudit.report.html.section import Section
from rlaudit.report.report_format import Document

MARKS = {"match": "✓ match", "mismatch": "✗ mismatch", "inconclusive": "? inconclusive", "not tested": "– not tested"}
OPEN_UP_TO = 3


def verdicts(document: Document) -> Section | None:
    """None where a command judges no layer, as curves do."""
    if not document["layers"]:
        return None
    cards = (_card(number, layer) for number, layer in enumerate(document["layers"], start=1))
    return Section("verdicts", "Verdicts", element("div", cards, class_="layers"))


def _card(number: int, layer: Mapping[str, Any]) -> Markup:
    verdict = layer["verdict"]
    said = [("Next", layer["next"]), ("Refuted by", layer["falsifier"])]
    terms = [joined(element("dt", term), element("dd", text)) for term, text in said if text]
    return element(
        "section",
        element("h3", f"{number}. {layer['layer'].capitalize()}", element("span", MARKS[verdict], class_="verdict")),
        element("p", layer["cause"], class_="cause") if layer["cause"] else Markup(""),
        element("p", _arrow(layer["because"])),
        element("dl", terms) if terms else Markup(""),
        folded(f"Evidence ({len(layer['evidence'])})", listed(layer["evidence"])) if layer["evidence"] else Markup(""),
        class_=f"layer {verdict.replace(' ', '-')}",
    )


def _arrow(text: str) -> str:
    """An arrow of two signs could be cut at the end of a line."""
    return text.replace(" -> ", " → ")
