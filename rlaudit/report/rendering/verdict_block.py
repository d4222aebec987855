"""The verdict of a change in the form that maintainers paste: the answer, one table, three findings, known defects.

It fits a screen (fewer than 30 lines of Markdown) however much the report holds; all else is folded below it.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.report.rendering import verdict_blocks
from rlaudit.report.rendering.markdown_escaped import escaped, table
from rlaudit.report.rendering.outline import kind_of
from rlaudit.text.counted import counted
from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.report.report import Report

HEADER = ("metric", "today", "new", "limit and why", "verdict", "layer")
# They add up to 26 lines, with the title and the empty lines.
MOST_SENTENCES, MOST_ROWS, MOST_FINDINGS, MOST_DEFECTS = 4, 8, 3, 3
# Characters of a sentence. A longer one is cut at a word: what is folded has the whole.
LONGEST = 300


@dataclass(frozen=True)
class Row:
    """One metric."""

    metric: str
    today: str
    new: str
    limit: str
    verdict: str
    layer: str


@dataclass(frozen=True)
class VerdictBlock:
    """What is pasted, the gravest first."""

    title: str
    # Sentences.
    answer: Sequence[str]
    rows: Sequence[Row]
    findings: Sequence[str] = ()
    # Known defects that the change crosses.
    defects: Sequence[str] = ()


def verdict_block(report: "Report") -> VerdictBlock | None:
    """Return the block of a report, with nothing in it that a terminal would obey; None for other kinds of reports."""
    kind = kind_of(report)
    if kind not in {module.name for module in pkgutil.iter_modules(verdict_blocks.__path__)}:
        return None
    block: Callable[[Report], VerdictBlock] = importlib.import_module(f"{verdict_blocks.__name__}.{kind}").BLOCK
    return block(printable(dict(report)))


def in_markdown(block: VerdictBlock) -> str:
    """Return fewer than 30 lines of Markdown."""
    answer = [*block.answer[: MOST_SENTENCES - 1], " ".join(block.answer[MOST_SENTENCES - 1 :])]
    cells = [[row.metric, row.today, row.new, row.limit, row.verdict, row.layer] for row in block.rows[:MOST_ROWS]]
    left = len(block.rows) - len(cells)
    parts = [
        f"# {escaped(block.title.replace(' -> ', ' → '))}",
        "  \n".join(escaped(_cut(sentence)) for sentence in answer if sentence),
        table(HEADER, cells) if cells else "",
        f"{counted(left, 'further row')} below." if left else "",
        _listed(block.findings, MOST_FINDINGS, "further finding"),
        _listed(block.defects, MOST_DEFECTS, "further known defect", "Known defect: "),
    ]
    return "\n\n".join(part for part in parts if part)


def _listed(sentences: Sequence[str], most: int, what: str, label: str = "") -> str:
    lines = [f"- {label}{escaped(_cut(sentence))}" for sentence in sentences[:most]]
    left = len(sentences) - len(lines)
    return "\n".join([*lines, *([f"- {counted(left, what)} below"] if left else [])])


def _cut(sentence: str) -> str:
    words = " ".join(sentence.split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST].rpartition(' ')[0]} …"
