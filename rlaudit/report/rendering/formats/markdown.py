"""Markdown, for pull requests and step summaries."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rlaudit.report.rendering.markdown_escaped import cell, coded, escaped, fenced, table
from rlaudit.report.rendering.outline import (
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
from rlaudit.report.rendering.report_format import ReportFormat
from rlaudit.report.rendering.statements import fix_line, location
from rlaudit.report.rendering.verdict_block import in_markdown, verdict_block
from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.layers import Judgement
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

# Longer tables are thinned, since a pull request cuts comments at 65 536 characters. The JSON report has all rows.
LONGEST = 60
FOLDED = "<details><summary>All that was found, and what it rests on</summary>"


def render(report: "Report", width: int | None, unfolded: bool = False) -> str:
    """Return the sections of the text report, then the pictures as tables; behind a verdict they are folded.

    unfolded: whether it has what a page folds.
    """
    outline = outline_of(report)
    block = verdict_block(report)
    title = f"# {_title(outline.title)}" if outline.headed else f"# rlaudit {report['command']}"
    # GitHub reads what is folded as Markdown only behind an empty line.
    parts = [title] if block is None else [in_markdown(block), FOLDED]
    parts += [escaped(outline.lead)] if outline.lead else []
    parts += [_list(outline.about)] if outline.about else []
    # Markdown begins with what a terminal ends with: both are seen first.
    for section in sorted(outline.shown(), key=lambda section: not section.closes):
        parts += _section(section, unfolded)
    parts += [escaped(outline.left_out)] if outline.left_out and not unfolded else []
    if "markdown" in outline.pictured:
        parts += _pictures(report)
    parts += [] if block is None else ["</details>"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _pictures(report: "Report") -> Iterator[str]:
    """Yield what each picture shows, and its numbers as a table; then why others are missing."""
    from rlaudit.report.rendering.picture import pictures_of

    drawn, missing = pictures_of(printable(dict(report)))
    yield "## Figures" if drawn else ""
    for picture in drawn:
        yield f"### {escaped(picture.full_title)}"
        yield escaped(picture.caption)
        yield table(picture.table.header, _thinned(picture.table.rows))
    yield "## Not drawn" if missing else ""
    yield _list(f"{picture.title}: {picture.reason}" for picture in missing)


def _thinned(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return every nth row, and the last."""
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
            return _list(f"{name}: {'. '.join(sentences)}" for name, sentences in entries)
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
    labelled = (("", layer.because), ("**Next:** ", layer.next), ("**Wrong if:** ", layer.falsifier))
    parts = [f"## {number}. {layer.layer}: **{layer.verdict.upper()}**{cause}"]
    parts += [f"{label}{escaped(text)}" for label, text in labelled if text]
    return "\n\n".join([*parts, *([_list(layer.evidence)] if layer.evidence else [])])


def _findings(findings: "Sequence[Finding]") -> str:
    rows = []
    for finding in findings:
        lines = [finding.message]
        lines += [f"Fix: {fix_line(finding.fix)}."] if finding.fix is not None else []
        lines += [f"Confirm: `{finding.confirm}`"] if finding.confirm else []
        lines += [f"Look at: {finding.look}"] if finding.look else []
        place, rule = coded(location(finding.location)), coded(finding.rule)
        rows.append([f"**{finding.severity}**", place, rule, "<br>".join(map(cell, lines))])
    return table(["severity", "where", "rule", "what"], rows, str)


def _title(title: str) -> str:
    return escaped(title.replace(" -> ", " → "))


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


render_in_full = partial(render, unfolded=True)
FORMAT = ReportFormat("markdown", render, in_full=render_in_full)
