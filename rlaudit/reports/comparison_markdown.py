"""A comparison or a diagnosis as Markdown, for pull requests and step summaries."""

from rlaudit.reports import comparison_words as words
from rlaudit.reports.printable import printable
from rlaudit.reports.report_format import Document

MARKS = {"match": "✅", "mismatch": "❌", "inconclusive": "⚠️", "not tested": "➖"}


def render(document: Document) -> str:
    """The same parts as the text report."""
    document = printable(dict(document))
    lines = [f"## rlaudit {document['command']}", "", _escaped(words.headline(document)), ""]
    lines += ["| layer | verdict | because |", "| --- | --- | --- |"]
    for layer in document["layers"]:
        title = f"{MARKS[layer['verdict']]} {words.layer_title(layer)}"
        lines.append(f"| {layer['layer']} | {_cell(title)} | {_cell(layer['because'])} |")
    for layer in document["layers"]:
        lines += ["", f"### {layer['layer'].capitalize()}: {_escaped(words.layer_title(layer))}", ""]
        lines += [
            f"- {'' if label == '-' else f'**{label}** '}{_escaped(said)}" for label, said in words.layer_lines(layer)
        ]
    for one in document.get("comparisons", []):
        lines += ["", f"### {_escaped(one['name'])}", ""]
        lines += [f"- {_escaped(line)}" for line in words.about(one)]
        lines += ["", "| metric | value [95 % interval] |", "| --- | --- |"]
        lines += [f"| {_cell(title)} | {_cell(value)} |" for title, value in words.figures(one)]
        if one["faults"]["count"]:
            lines += ["", "Faults:", "", *(f"- {_escaped(line)}" for line in words.faults(one))]
    if document["command"] == "diagnose":
        lines += ["", "### Read", "", *(f"- {_escaped(one['path'])}: {one['command']}" for one in document["sources"])]
    if document["not_seen"]:
        lines += ["", "### Not seen", "", *(f"- {_escaped(line)}" for line in document["not_seen"])]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Without what Markdown would take for markup."""
    for sign in ("\\", "`", "*", "_", "<", "[", "]"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")
