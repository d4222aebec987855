"""Text for people: the verdict of each layer first, then the figures behind it.

On a terminal, coloured and wrapped to its width. Piped, the same lines in full: nothing is cut to a width nobody has.
"""

import io
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from rlaudit.reports.figures import (
    HEADLINE,
    TITLES,
    arm_state,
    arm_title,
    cost,
    interval,
    several_blocks,
    worth_a_row,
)
from rlaudit.reports.report_format import Document, ReportFormat

COLOURS = {"match": "green", "mismatch": "bold red", "inconclusive": "yellow", "not tested": "dim"}
WIDE = 100_000
SHORT_TITLES = {
    "mean_ratio_minus_one": "mean ratio - 1",
    "k3": "k3 (nats)",
    "median_abs_log_ratio": "median |d|",
    "gspo_clip_fraction": "GSPO clipped",
}


def render(document: Document, width: int | None) -> str:
    """The report as text; ANSI colours only for a terminal (`width` given)."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or WIDE,
        force_terminal=width is not None,
        highlight=False,
        color_system="standard" if width else None,
    )
    _headline(console, document)
    _layers(console, document)
    _arms(console, document)
    _effects(console, document)
    _blocks(console, document)
    _list(console, "Not seen", document["not_seen"])
    _list(console, "Cost", cost(document))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _headline(console: Console, document: Document) -> None:
    versions = document["versions"]
    moved = f"vLLM {versions['from']} -> {versions['to']}" if versions["from"] else f"vLLM {versions['to']}"
    console.print(f"[bold]{escape(moved)}[/]  {escape(document.get('description', ''))}\n")


def _layers(console: Console, document: Document) -> None:
    for number, layer in enumerate(document["layers"], start=1):
        verdict = layer["verdict"]
        cause = f": {layer['cause']}" if layer["cause"] else ""
        console.print(
            f"[bold]{number}. {layer['layer']}[/]  [{COLOURS[verdict]}]{verdict.upper()}[/]{escape(cause)}",
            soft_wrap=False,
        )
        for label in ("because", "next", "falsifier"):
            if layer[label]:
                name = "refuted by" if label == "falsifier" else label
                _indented(console, f"[dim]{name}[/] {escape(layer[label])}")
        for line in layer["evidence"]:
            _indented(console, f"[dim]-[/] {escape(line)}")
        console.print()


def _indented(console: Console, text: str) -> None:
    console.print(Padding(text, (0, 0, 0, 3)))


def _arms(console: Console, document: Document) -> None:
    table = _table("Arm", "vLLM", *(SHORT_TITLES[name] for name in HEADLINE), "tokens", "cached")
    blocks = several_blocks(document)
    for arm in document["arms"]:
        version = arm["environment"].removeprefix("vllm ")
        if not arm["measurements"]:
            table.add_row(escape(arm_title(arm, blocks)), version, escape(arm_state(arm)))
            continue
        found = arm["measurements"]
        table.add_row(
            escape(arm_title(arm, blocks)),
            version,
            *(escape(interval(found[name])) for name in HEADLINE),
            str(found["k3"]["tokens"]),
            str(arm["cached_tokens"]),
        )
    _titled(console, "Arms, rollout against trainer (95 % intervals over prompts)", table)


def _effects(console: Console, document: Document) -> None:
    if not document["effects"]:
        return
    table = _table(
        "Factor",
        "on",
        "verdict",
        "first: candidate with it - candidate",
        "last: parity - parity without it",
        "",
    )
    blocks = several_blocks(document)
    for effect in document["effects"]:
        name = f"{effect['factor']}={effect['level']}"
        unseen = effect["first"] is None
        if not worth_a_row(effect):
            continue
        table.add_row(
            escape(f"{effect['block']}: {name}" if blocks else name),
            "-" if unseen else TITLES[effect["metric"]],
            effect["verdict"],
            escape(interval(effect["first"], "difference")),
            escape(interval(effect["last"], "difference")),
            escape(effect["because"] if unseen else ("interacts" if effect["interacts"] else "")),
        )
    _titled(console, "Factors, paired by prompt", table)


def _blocks(console: Console, document: Document) -> None:
    for block in document["blocks"]:
        if block["parity"]:
            console.print("[bold]Parity settings[/]")
            for line in block["parity"].splitlines():
                _indented(console, escape(line))
            console.print()


def _list(console: Console, title: str, lines: Iterable[str]) -> None:
    console.print(f"[bold]{title}[/]")
    for line in lines:
        _indented(console, f"- {escape(line)}")
    console.print()


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _titled(console: Console, title: str, table: Table) -> None:
    console.print(f"[bold]{title}[/]")
    console.print(Padding(table, (0, 0, 0, 3)))
    console.print()


FORMAT = ReportFormat("text", render)
