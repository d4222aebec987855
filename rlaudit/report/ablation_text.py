"""An ablation as text: the verdict of each layer first, then the figures behind it.

On a terminal, coloured and wrapped to its width. Piped, the same lines in full: nothing is cut to a width nobody has.
"""

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from rlaudit.printable import printable
from rlaudit.report.figures import HEADLINE, TITLES, arm_state, cost, interval, worth_a_row
from rlaudit.report.loaded_engines import loaded_engines
from rlaudit.report.report_format import Document

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
    document = printable(dict(document))
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
    _loaded(console, document)
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
    headers = ["vLLM", *(SHORT_TITLES[name] for name in HEADLINE), "tokens", "cached"]
    for block in document["blocks"]:
        rows = []
        for arm in document["arms"]:
            if arm["block"] != block["name"]:
                continue
            found, version = arm["measurements"], arm["environment"].removeprefix("vllm ")
            figures = (
                [*(interval(found[name]) for name in HEADLINE), str(found["k3"]["tokens"]), str(arm["cached_tokens"])]
                if found
                else [arm_state(arm)]
            )
            rows.append((arm["name"].replace("candidate + ", "+ ").replace("parity - ", "- "), [version, *figures]))
        title = f"Arms of {block['name']}, rollout against trainer (95 % intervals over prompts)"
        _rows(console, title, "arm", headers, rows)


def _effects(console: Console, document: Document) -> None:
    for block in document["blocks"]:
        rows = []
        for effect in document["effects"]:
            if effect["block"] != block["name"] or not worth_a_row(effect):
                continue
            measured = effect["first"] is not None
            rows.append(
                (
                    f"{effect['factor']}={effect['level']}",
                    [
                        effect["verdict"] + (", interacts" if effect["interacts"] else ""),
                        TITLES[effect["metric"]] if measured else "",
                        interval(effect["first"], "difference") if measured else "",
                        interval(effect["last"], "difference") if effect["last"] is not None else "",
                    ],
                )
            )
        headers = ["verdict", "on", "first: set - as it is", "last: parity - left out"]
        if rows:
            _rows(console, f"Factors of {block['name']}, paired by prompt", "factor", headers, rows)


def _loaded(console: Console, document: Document) -> None:
    for block in loaded_engines(document):
        console.print(f"[bold]Loaded by the engines of {escape(block.block)}, as seen in their workers[/]")
        width = max((len(label) for label, _ in block.differing_lines), default=0)
        for label, values in block.differing_lines:
            _indented(console, f"{label.ljust(width)}  {escape(values)}")
        if block.shared:
            _indented(console, f"[dim]all arms: {escape(block.shared_line)}[/]")
        console.print()


def _rows(
    console: Console, title: str, key: str, headers: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]
) -> None:
    """A table where it fits; on a narrower terminal, the figures of each row below its name: never half a figure."""
    columns = [[key, *(name for name, _ in rows)]]
    for place, header in enumerate(headers):
        columns.append([header, *(figures[place] if place < len(figures) else "" for _, figures in rows)])
    widths = [max(map(len, column)) for column in columns]
    console.print(f"[bold]{escape(title)}[/]")
    if sum(widths) + 2 * len(widths) + 3 <= console.width:
        for number, line in enumerate(zip(*columns, strict=True)):
            text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            _indented(console, f"[dim]{escape(text)}[/]" if number == 0 else escape(text))
    else:
        for name, figures in rows:
            whole = len(figures) == len(headers)
            said = [f"{header} {figure}" for header, figure in zip(headers, figures, strict=False) if figure]
            said = said if whole else list(figures)
            _indented(console, escape(name))
            console.print(Padding(escape("; ".join(said)), (0, 0, 0, 6)))
    console.print()


def _blocks(console: Console, document: Document) -> None:
    for block in document["blocks"]:
        if block["parity"]:
            console.print("[bold]Parity settings[/]")
            for line in block["parity"].splitlines():
                # To be pasted: a line of YAML that a narrow terminal cut in two would not be YAML.
                console.print(f"   {escape(line)}", soft_wrap=True)
            console.print()


def _list(console: Console, title: str, lines: Iterable[str]) -> None:
    console.print(f"[bold]{title}[/]")
    for line in lines:
        _indented(console, f"- {escape(line)}")
    console.print()
