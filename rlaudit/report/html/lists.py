"""Sections that every report may have: findings, parity settings, what was not seen, what it cost."""

from collections.abc import Iterable

from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.html.parts import code, listed
from rlaudit.report.html.section import Section
from rlaudit.report.report_format import Document


def list_section(name: str, title: str, lines: Iterable[str]) -> Section | None:
    """None where there is nothing to list."""
    said = list(lines)
    return Section(name, title, listed(said)) if said else None


def parity(document: Document) -> Section | None:
    """What to paste into the rollout config, block by block."""
    blocks = [block for block in document.get("blocks", ()) if block["parity"]]
    if not blocks:
        return None
    parts = [
        joined(element("h3", block["name"]) if len(blocks) > 1 else Markup(""), code(block["parity"]))
        for block in blocks
    ]
    return Section("parity", "Parity settings", joined(parts))
