"""An inspection as Markdown."""

from collections.abc import Iterable, Sequence

from rlaudit.printable import one_line, printable
from rlaudit.report.inspection_words import (
    Row,
    findings_of,
    fix_line,
    location,
    lost,
    moving,
    moving_by_default,
    not_seen_elsewhere,
    summary,
    title,
)
from rlaudit.report.markdown_escaped import escaped
from rlaudit.report.report_format import Document


def render(document: Document) -> str:
    """The same parts as the text report."""
    document = printable(dict(document))
    configs = document.get("configs", ())
    paths = list(dict.fromkeys(config["path"] for config in configs))
    parts = ["# rlaudit inspect"]
    for path in paths:
        own = [number for number, config in enumerate(configs) if config["path"] == path]
        parts += [f"## {escaped(title(configs[number], len(own) > 1))}" for number in own]
        parts += _findings(findings_of(document, path, paths))
        for number in own:
            header, rows = moving(document, number)
            if rows:
                parts += ["### Settings that move or do not arrive as written", _table(header, rows, coded=True)]
            if configs[number]["lost"]:
                parts += ["### Written, and without effect", _list(lost(configs[number]))]
            if configs[number]["not_seen"]:
                parts += ["### Not seen in this file", _list(configs[number]["not_seen"])]
    parts += _findings(findings_of(document, None, paths))
    header, rows = moving_by_default(document)
    if rows:
        parts += [f"## {escaped(document['description'])}", _table(header, rows, coded=True)]
    bugs = document.get("inspection", {}).get("bugs", ())
    if bugs:
        parts += ["## Failed", _list(bugs)]
    parts += ["## Not seen", _list(not_seen_elsewhere(document)), "  \n".join(map(escaped, summary(document)))]
    return "\n\n".join(parts) + "\n"


def _findings(findings: Sequence[Row]) -> list[str]:
    if not findings:
        return []
    rows = []
    for finding in findings:
        said = [finding["message"]]
        if finding["fix"] is not None:
            said.append(f"Fix: {fix_line(finding['fix'])}.")
        if finding.get("confirm"):
            said.append(f"Confirm: {finding['confirm']}")
        rows.append([f"**{finding['severity']}**", _code(location(finding["location"])), _code(finding["rule"]),
                     "<br>".join(map(escaped, said))])  # fmt: skip
    return [_table(["severity", "where", "rule", "what"], rows)]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], coded: bool = False) -> str:
    lines = [[escaped(name) for name in header], ["---"] * len(header)]
    lines += [[_code(cell) for cell in row] if coded else list(row) for row in rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


def _code(text: str) -> str:
    text = one_line(text)
    return f"`` {text} ``" if "`" in text else f"`{text}`"
