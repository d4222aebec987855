"""Sections of an inspection: findings file by file, the settings that move, what was not read."""

from collections.abc import Sequence

from rlaudit.report import inspection_words as words
from rlaudit.report.html.lists import list_section
from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.html.parts import listed, paragraphs, table
from rlaudit.report.html.section import Section
from rlaudit.report.report_format import Document


def sections(document: Document) -> list[Section | None]:
    """In reading order."""
    configs = document.get("configs", ())
    paths = list(dict.fromkeys(config["path"] for config in configs))
    header, rows = words.moving_by_default(document)
    return [
        *(_file(document, place, path, paths) for place, path in enumerate(paths)),
        _section("others", "Elsewhere", _findings(words.findings_of(document, None, paths))),
        Section("moving", document.get("description", "Defaults"), table(header, rows, "Defaults")) if rows else None,
        list_section("failed", "Failed", document.get("inspection", {}).get("bugs", ())),
        _section("summary", "Summary", paragraphs(words.summary(document))),
    ]


def not_seen(document: Document) -> Sequence[str]:
    """What belongs to no file."""
    return words.not_seen_elsewhere(document)


def title(document: Document) -> str:
    """The file, or how many."""
    configs = document.get("configs", ())
    if len(configs) == 1:
        return words.title(configs[0], several=False)
    return f"{len(configs)} rollout configs" if configs else "No rollout config"


def facts(document: Document) -> list[str]:
    """The counts."""
    counted = document.get("inspection", {}).get("counted", {})
    return [f"{number} {severity}{'s' * (number != 1)}" for severity, number in counted.items()]


def _file(document: Document, place: int, path: str, paths: Sequence[str]) -> Section:
    configs = document["configs"]
    own = [number for number, config in enumerate(configs) if config["path"] == path]
    parts = [_findings(words.findings_of(document, path, paths))]
    for number in own:
        header, rows = words.moving(document, number)
        heading = words.title(configs[number], len(own) > 1)
        if rows:
            parts += [element("h3", f"Settings that move or do not arrive as written: {heading}"),
                      table(header, rows, f"Settings of {heading}")]  # fmt: skip
        if configs[number]["lost"]:
            parts += [element("h3", "Written, and without effect"), listed(words.lost(configs[number]))]
        if configs[number]["not_seen"]:
            parts += [element("h3", "Not seen in this file"), listed(configs[number]["not_seen"])]
    return Section(f"file-{place}", path, joined(parts))


def _findings(found: Sequence[words.Row]) -> Markup:
    if not found:
        return Markup("")
    rows = []
    for one in found:
        fix = words.fix_line(one["fix"]) if one["fix"] is not None else ""
        rows.append([one["rule"], one["severity"], words.location(one["location"]), one["message"], fix,
                     one.get("confirm") or ""])  # fmt: skip
    return table(["rule", "severity", "where", "what", "fix", "confirm"], rows, "Findings")


def _section(name: str, title: str, content: Markup) -> Section | None:
    return Section(name, title, content) if content else None
