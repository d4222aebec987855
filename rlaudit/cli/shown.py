"""How `explain` and `list` show text: whole lines in a pipe; on a terminal as wide as it is, in a pager if longer."""

import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence

from rlaudit.cli.terminal import coloured, columns
from rlaudit.files.standard_output import to_stdout

# Columns; a line is not folded further.
_NARROWEST = 40
# The least room for the last cell of a list beside the others.
_BESIDE = 30
# A line of a docstring is as long as this only if it goes on in the next line.
_WRAPPED = range(100, 121)
# A label in prose begins a line only by chance: it is not capitalised.
_ENTRY = re.compile(r"\s*\S+  | +[\w.-]+: |[A-Z][\w-]*: ")
_FIRST_CELL = re.compile(r" *\S+  +")
# What a shell returns for a pager that it cannot run.
_NO_PAGER = {126, 127}


def show(page: str) -> None:
    """Write a page. Raises NotFinished as `to_stdout` does."""
    pager = _pager(page.count("\n") + 1)
    if pager is None or not _paged(f"{page}\n", pager):
        to_stdout(f"{page}\n")


def folded(page: str, wrapped: bool = True) -> str:
    """Return a page with lines as wide as the terminal. wrapped: whether it is a docstring, whose lines are joined."""
    width = columns()
    if width is None:
        return page
    lines: list[str] = []
    before = ""
    for line in page.splitlines():
        goes_on = len(before) in _WRAPPED and _indent(line) == _indent(before) and line.strip()
        if wrapped and goes_on and not _ENTRY.match(line):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
        before = line
    return "\n".join(_filled(line, width, _hanging(line, width)) for line in lines)


def in_columns(rows: Iterable[Sequence[object]]) -> str:
    """Return a line for each row. On a terminal the last cell is folded beside the others, or below them."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in cells), strict=True)]
    heads = ["".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False)) for row in cells]
    lines = [f"{head}{row[-1]}" for head, row in zip(heads, cells, strict=True)]
    width = columns()
    if width is None:
        return "\n".join(lines)
    beside = sum(widths) + 2 * len(widths)
    if width - beside >= _BESIDE:
        return "\n".join(_filled(line, width, " " * beside) for line in lines)
    below = [
        f"{head.rstrip()}\n{_filled(f'    {row[-1]}', width, '    ')}" for head, row in zip(heads, cells, strict=True)
    ]
    return "\n".join(line if len(line) <= width else two for line, two in zip(lines, below, strict=True))


def drawn(markdown: str) -> str:
    """Return Markdown as a terminal shows it; in a pipe as it is."""
    width = columns()
    if width is None:
        return markdown
    # It takes as long to import as a page to print.
    from io import StringIO

    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    text = StringIO()
    colours = coloured()
    theme = Theme({"markdown.code": "cyan"})
    console = Console(
        file=text, width=max(width, _NARROWEST), theme=theme, force_terminal=colours, no_color=not colours
    )
    console.print(Markdown(markdown, code_theme="ansi_dark", hyperlinks=False))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _hanging(line: str, width: int) -> str:
    """Return the indent of a line's further lines: below its second cell, if it has one and there is room."""
    cell = _FIRST_CELL.match(line)
    if cell is not None and width - cell.end() >= _BESIDE:
        return " " * cell.end()
    return _indent(line) + " " * 4 * bool(_ENTRY.match(line))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _filled(line: str, width: int, indent: str) -> str:
    width = max(width, _NARROWEST)
    if len(line) <= width:
        return line
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _pager(lines: int) -> str | None:
    """Return the pager where git would page: on a terminal that is not dumb, for a page longer than it."""
    height = shutil.get_terminal_size(fallback=(80, 0)).lines
    if columns() is None or os.environ.get("TERM", "dumb") in {"dumb", "unknown"} or not 0 < height <= lines:
        return None
    pager = os.environ.get("PAGER", "less" if shutil.which("less") else "")
    return None if pager in {"", "cat"} else pager


def _paged(page: str, pager: str) -> bool:
    """Return whether the pager, a command of a shell, was there and has shown the page."""
    import signal
    import subprocess

    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=environment)
    # Ctrl-C is the pager's.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.communicate(page)
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode not in _NO_PAGER
