"""Sections of a comparison or a diagnosis: the figures of each table of tokens, causes, faults, what was read."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlaudit.report import comparison_words as words
from rlaudit.report.figures import interval
from rlaudit.report.html.lists import list_section
from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.html.parts import folded, listed, table
from rlaudit.report.html.section import Section
from rlaudit.report.report_format import Document

MEANINGS = ("sampling", "trainer")
# Tables of metrics that stand open; where there are more, they open one by one.
OPEN = 2


def sections(document: Document) -> list[Section | None]:
    """In reading order."""
    compared = document.get("comparisons", ())
    return [
        Section("tables", "Tables of tokens", joined(_comparison(one, len(compared)) for one in compared))
        if compared
        else None,
        _settings(compared),
        list_section("read", "Read", (f"{one['path']}: {one['command']}" for one in document.get("sources", ()))),
    ]


def title(document: Document) -> str:
    """What was compared."""
    return words.headline(document)


def facts(document: Document) -> list[str]:
    """How much was compared."""
    compared = document.get("comparisons", ())
    drawn = sum(one["tokens"] for one in document.get("token_figures", ()))
    said = [f"{sum(one['compared_tokens'] for one in compared)} tokens compared"] if compared else []
    return [*said, f"{drawn} tokens drawn"] if drawn else said


def _comparison(one: Mapping[str, Any], count: int) -> Markup:
    rows = [
        [name, interval(found), found["unit"], str(found["tokens"]), found["formula"]]
        for name, found in one["measurements"].items()
    ]
    metrics = table(["metric", "value [95 % interval]", "unit", "tokens", "formula"], rows, f"Metrics of {one['name']}")
    faults = words.faults(one) if one["faults"]["count"] else []
    return joined(
        element("h3", one["name"]),
        listed(words.about(one)),
        metrics if count <= OPEN else folded(f"Metrics ({len(rows)})", metrics),
        folded(f"Faults ({one['faults']['count']})", listed(faults)) if faults else Markup(""),
    )


def _settings(compared: Sequence[Mapping[str, Any]]) -> Section | None:
    """How tokens were sampled and how the trainer takes them to be, side by side."""
    rows = [
        [f"{one['name']}: {name}", *(str(one[side].get(name, "-")) for side in MEANINGS)]
        for one in compared
        for name in dict.fromkeys([*one["sampling"], *one["trainer"]])
    ]
    header = ["setting", "rollouts were sampled at", "the trainer assumes"]
    return Section("settings", "Settings", table(header, rows, "Settings of both sides")) if rows else None
