"""A comparison or a diagnosis as Markdown, for pull requests and step summaries."""

from rlaudit.printable import printable
from rlaudit.report import comparison_words as words
from rlaudit.report.markdown_escaped import cell, escaped
from rlaudit.report.report_format import Document

MARKS = {"match": "✅", "mismatch": "❌", "inconclusive": "⚠️", "not tested": "➖"}


def render(document: Document) -> str:
    """The same parts as the text report."""
    document = printable(dict(document))
    lines = [f"## rlaudit {document['command']}", "", escaped(words.headline(document)), ""]
    lines += ["| layer | verdict | because |", "| --- | --- | --- |"]
    for layer in document["layers"]:
        title = f"{MARKS[layer['verdict']]} {words.layer_title(layer)}"
        lines.append(f"| {layer['layer']} | {cell(title)} | {cell(layer['because'])} |")
    for layer in document["layers"]:
        lines += ["", f"### {layer['layer'].capitalize()}: {escaped(words.layer_title(layer))}", ""]
        lines += [
            f"- {'' if label == '-' else f'**{label}** '}{escaped(said)}" for label, said in words.layer_lines(layer)
        ]
    for one in document.get("comparisons", []):
        lines += ["", f"### {escaped(one['name'])}", ""]
        lines += [f"- {escaped(line)}" for line in words.about(one)]
        lines += ["", "| metric | value [95 % interval] |", "| --- | --- |"]
        lines += [f"| {cell(title)} | {cell(value)} |" for title, value in words.figures(one)]
        if one["faults"]["count"]:
            lines += ["", "Faults:", "", *(f"- {escaped(line)}" for line in words.faults(one))]
    if document["command"] == "diagnose":
        lines += ["", "### Read", "", *(f"- {escaped(one['path'])}: {one['command']}" for one in document["sources"])]
    if document["not_seen"]:
        lines += ["", "### Not seen", "", *(f"- {escaped(line)}" for line in document["not_seen"])]
    return "\n".join(lines) + "\n"
