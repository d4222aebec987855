"""Markdown, for pull requests and step summaries."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rlaudit.printable import printable
from rlaudit.rendering.markdown_escaped import cell, coded, escaped, fenced, table
from rlaudit.rendering.outline import (
    Block,
    Brief,
    Code,
    Entries,
    Findings,
    Folded,
    Lines,
    Prose,
    Section,
    Table,
    Verdicts,
    outline_of,
)
from rlaudit.rendering.report_format import ReportFormat
from rlaudit.rendering.statements import fix_line, location

if TYPE_CHECKING:
    from rlaudit.layers import Judgement
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

# Longer tables are the JSON report's to carry: a pull request cuts comments at 65 536 characters.
LONGEST = 60


def render(document: "Report", width: int | None) -> str:
    """Return the same parts as the text report, then the pictures as tables."""
    return _page(document, unfolded=False)


def render_in_full(document: "Report", width: int | None) -> str:
    """Render it with what a page folds."""
    return _page(document, unfolded=True)


def _page(document: "Report", unfolded: bool) -> str:
    outline = outline_of(document)
    parts = [f"# {_title(outline.title)}" if outline.headed else f"# rlaudit {document['command']}"]
    parts += [escaped(outline.lead)] if outline.lead else []
    parts += [_list(outline.about)] if outline.about else []
    # What a terminal ends with, so that it is seen, a page begins with.
    for section in sorted(outline.shown(), key=lambda one: not one.closes):
        parts += _section(section, unfolded)
    parts += [escaped(outline.left_out)] if outline.left_out and not unfolded else []
    if "markdown" in outline.pictured:
        parts += _pictures(document)
    return "\n\n".join(part for part in parts if part) + "\n"


def _pictures(document: "Report") -> Iterator[str]:
    """Yield what each picture shows, and its numbers as a table; the reasons where there is none."""
    from rlaudit.rendering.picture import pictures_of

    drawn, missing = pictures_of(printable(dict(document)))
    yield "## Figures" if drawn else ""
    for one in drawn:
        yield f"### {escaped(one.full_title)}"
        yield escaped(one.caption)
        yield table(one.table.header, _thinned(one.table.rows))
    yield "## Not drawn" if missing else ""
    yield _list(f"{one.title}: {one.reason}" for one in missing)


def _thinned(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return every nth row, with the last."""
    kept = list(rows[:: -(-len(rows) // LONGEST) or 1])
    return kept if not rows or kept[-1] is rows[-1] else [*kept, rows[-1]]


def _section(section: Section, unfolded: bool) -> Iterator[str]:
    if section.title and not isinstance(section.blocks[0], Verdicts):
        yield from (f"## {_title(title)}" for title in (section.title, *section.also))
    for block in section.blocks:
        if isinstance(block, Folded):
            yield from (f"### {_title(block.summary)}", _block(block.block)) if unfolded else ()
        else:
            yield f"### {_title(block.title)}" if block.title else ""
            yield _block(block)


def _block(block: Block) -> str:  # noqa: PLR0911 - one for each kind of block
    match block:
        case Lines(lines):
            return _list(lines)
        case Entries(entries):
            return _list(f"{name}: {'. '.join(said)}" for name, said in entries)
        case Prose(lines):
            return "  \n".join(map(escaped, lines))
        case Table(header, rows):
            return table(header, rows, coded if block.values else cell)
        case Code(code, language):
            return fenced(code, language)
        case Verdicts(layers):
            return "\n\n".join(_layer(number, layer) for number, layer in enumerate(layers, start=1))
        case Findings(findings):
            return _findings(findings)
        case Folded() | Brief():
            return ""


def _layer(number: int, layer: "Judgement") -> str:
    cause = f": {escaped(layer.cause)}" if layer.cause else ""
    said = (("", layer.because), ("**Next:** ", layer.next), ("**Refuted by:** ", layer.falsifier))
    parts = [f"## {number}. {layer.layer}: **{layer.verdict.upper()}**{cause}"]
    parts += [f"{label}{escaped(text)}" for label, text in said if text]
    return "\n\n".join([*parts, *([_list(layer.evidence)] if layer.evidence else [])])


def _findings(findings: "Sequence[Finding]") -> str:
    rows = []
    for one in findings:
        said = [one.message]
        said += [f"Fix: {fix_line(one.fix)}."] if one.fix is not None else []
        said += [f"Confirm: {one.confirm}"] if one.confirm else []
        where = (coded(location(one.location)), coded(one.rule))
        rows.append([f"**{one.severity}**", *where, "<br>".join(map(cell, said))])
    return table(["severity", "where", "rule", "what"], rows, str)


def _title(title: str) -> str:
    return escaped(title.replace(" -> ", " → "))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


FORMAT = ReportFormat("markdown", render, in_full=render_in_full)
