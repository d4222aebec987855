"""An ablation as Markdown."""

from collections.abc import Iterable

from rlaudit.printable import printable
from rlaudit.report.figures import HEADLINE, TITLES, arm_state, arm_title, cost, interval, several_blocks, worth_a_row
from rlaudit.report.loaded_engines import loaded_engines
from rlaudit.report.markdown_escaped import cell, escaped, fenced
from rlaudit.report.report_format import Document


def render(document: Document) -> str:
    """The same parts as the text report."""
    document = printable(dict(document))
    versions = document["versions"]
    moved = f"vLLM {versions['from']} → {versions['to']}" if versions["from"] else f"vLLM {versions['to']}"
    parts = [
        f"# {escaped(moved)}",
        escaped(document.get("description", "")),
        _layers(document),
        _arms(document),
        _effects(document),
        _loaded(document),
    ]
    parts += [
        f"## Parity settings\n\n{fenced(block['parity'], 'yaml')}" for block in document["blocks"] if block["parity"]
    ]
    parts += ["## Not seen\n\n" + _list(document["not_seen"]), "## Cost\n\n" + _list(cost(document))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _layers(document: Document) -> str:
    sections = []
    for number, layer in enumerate(document["layers"], start=1):
        cause = f": {escaped(layer['cause'])}" if layer["cause"] else ""
        lines = [
            f"## {number}. {layer['layer']}: **{layer['verdict'].upper()}**{cause}",
            "",
            escaped(layer["because"]),
        ]
        if layer["next"]:
            lines += ["", f"**Next:** {escaped(layer['next'])}"]
        if layer["falsifier"]:
            lines += ["", f"**Refuted by:** {escaped(layer['falsifier'])}"]
        if layer["evidence"]:
            lines += ["", _list(layer["evidence"])]
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def _arms(document: Document) -> str:
    blocks = several_blocks(document)
    rows = []
    for arm in document["arms"]:
        found = arm["measurements"]
        figures = (
            [interval(found[name]) for name in HEADLINE] if found else [arm_state(arm)] + [""] * (len(HEADLINE) - 1)
        )
        tokens = str(found["k3"]["tokens"]) if found else ""
        rows.append([arm_title(arm, blocks), arm["environment"].removeprefix("vllm "), *figures, tokens])
    return "## Arms\n\n" + _table(["arm", "vLLM", *(TITLES.get(name, name) for name in HEADLINE), "tokens"], rows)


def _effects(document: Document) -> str:
    if not document["effects"]:
        return ""
    rows = [
        [
            f"{effect['block']}: {effect['factor']}={effect['level']}",
            TITLES[effect["metric"]],
            effect["verdict"],
            interval(effect["first"], "difference"),
            interval(effect["last"], "difference"),
            effect["because"],
        ]
        for effect in document["effects"]
        if worth_a_row(effect)
    ]
    return "## Factors\n\n" + _table(["factor", "on", "verdict", "first", "last", "because"], rows)


def _loaded(document: Document) -> str:
    sections = []
    for block in loaded_engines(document):
        rows = [[label, value, arms] for label, parts in block.differing for value, arms in parts]
        lines = [f"## Loaded by the engines of {escaped(block.block)}", ""]
        if rows:
            lines += [_table(["as seen in the workers", "value", "arms"], rows), ""]
        sections.append("\n".join([*lines, f"All arms: {escaped(block.shared_line)}"] if block.shared else lines))
    return "\n\n".join(sections)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(cell(one) for one in line) + " |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
