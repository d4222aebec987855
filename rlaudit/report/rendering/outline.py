"""A report as blocks in reading order: what every format for people draws.

`outlines/` has a file for each kind of report, which says what the report consists of. Text, Markdown and HTML know
blocks and no command.
"""

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlaudit.text.printable import printable

if TYPE_CHECKING:
    from rlaudit.layers import Judgement
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

# A report with one of these parts is about that part, whichever command made it.
PARTS_WITH_OUTLINES = ("weight_updates", "canary", "bump", "releases", "gates", "learned_gates")
NOT_SEEN, COST = "Not seen", "Cost"


@dataclass(frozen=True)
class Lines:
    """A list, an item a line."""

    lines: Sequence[str]
    title: str = ""
    mark: str = "- "  # what text puts before each item


@dataclass(frozen=True)
class Entries:
    """Names, each with sentences about it."""

    entries: Sequence[tuple[str, Sequence[str]]]
    title: str = ""


@dataclass(frozen=True)
class Prose:
    """Sentences that are no list."""

    lines: Sequence[str]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells; the first cell names its row, and shorter rows end with empty cells."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    on_terminal: int | None = None  # how many columns text has room for, None for all
    headed: bool = True  # whether text shows the header
    marked: frozenset[int] = frozenset()  # the numbers of rows that stand out
    values: bool = False  # whether cells are values of settings, to be shown as code


@dataclass(frozen=True)
class Code:
    """Text to paste."""

    text: str
    language: str
    title: str = ""


@dataclass(frozen=True)
class Verdicts:
    """The judgements of the layers, in the order in which layers must be judged."""

    layers: "Sequence[Judgement]"
    title: str = ""


@dataclass(frozen=True)
class Findings:
    """Findings with their places, the gravest first."""

    findings: "Sequence[Finding]"
    title: str = ""


@dataclass(frozen=True)
class Folded:
    """What a page opens on a click. Text and Markdown leave it to the page, to -v and to the JSON report."""

    summary: str
    block: "Table | Lines | Findings"
    title: str = ""
    kind: str = ""  # what its items are, in the plural

    @property
    def number(self) -> int:
        """Return how many items it has."""
        match self.block:
            case Table(_, rows):
                return len(rows)
            case Lines(lines):
                return len(lines)
            case Findings(findings):
                return len(findings)


@dataclass(frozen=True)
class Brief:
    """The end of a long report on a terminal, on one screen. Other formats leave it out."""

    statements: Sequence[tuple[int, str]]  # each with its indent
    title: str = ""


Block = Lines | Entries | Prose | Table | Code | Verdicts | Findings | Folded | Brief


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    name: str  # of letters, digits and hyphens, unique in the report
    title: str
    blocks: Sequence[Block]
    also: Sequence[str] = ()  # further lines of the title
    indent: int = 0  # of the title in text
    gathers: bool = False  # whether text shows only the titles of the blocks
    leads: bool = False  # whether a page shows it before the pictures
    closes: bool = False  # whether text ends with it, since the end is what a terminal shows
    page_only: bool = False  # whether text and Markdown leave it out
    terminal_only: bool = False  # whether all but a terminal leave it out


@dataclass(frozen=True)
class Indents:
    """How far text is indented."""

    title: int = 0
    line: int = 3
    table: int = 3


@dataclass(frozen=True)
class Outline:
    """A whole report."""

    title: str
    sections: Sequence[Section]
    lead: str = ""  # what the report is about
    facts: Sequence[str] = ()  # how much was looked at
    about: Sequence[str] = ()  # lines below the title
    headed: bool = True  # whether text and Markdown begin with the title
    indents: Indents = field(default_factory=Indents)
    pictured: frozenset[str] = frozenset({"text", "markdown"})  # the formats beside HTML that have pictures
    unfolded_by: str = ""  # the option with which text shows what a page folds

    @property
    def left_out(self) -> str:
        """Say what text and Markdown leave out, and the option that shows it. Empty if there is no such option."""
        numbers = Counter[str]()
        for section in self.sections:
            for block in section.blocks:
                if isinstance(block, Folded):
                    numbers[block.kind] += block.number
        kinds = ", ".join(f"{kind} ({number})" for kind, number in numbers.items())
        return f"{self.unfolded_by} also shows: {kinds}." if kinds and self.unfolded_by else ""

    def shown(self, *, on_page: bool = False, on_terminal: bool = False) -> list[Section]:
        """Return the sections that this format shows, without empty ones."""
        return [
            section
            for section in self.sections
            if section.blocks and (on_page or not section.page_only) and (on_terminal or not section.terminal_only)
        ]


def kind_of(report: "Report") -> str:
    """Return what a report is about: a part of it, else its command."""
    return next((part for part in PARTS_WITH_OUTLINES if part in report), report.get("command", ""))


def outline_of(report: "Report") -> Outline:
    """Return the outline of a report, with nothing in it that a terminal would obey."""
    name = kind_of(report)
    # Import no other outline: an inspection takes less time than importing all of them.
    outline: Outline = importlib.import_module(f"rlaudit.report.rendering.outlines.{name}").outline(
        printable(dict(report))
    )
    return outline


def verdicts(report: "Report", page_only: bool = False) -> Section:
    """Return the section that every command that judges begins with."""
    blocks = [Verdicts(report["layers"])] if report["layers"] else []
    return Section("verdicts", "Verdicts", blocks, gathers=True, leads=True, page_only=page_only)


def listed(name: str, title: str, lines: Sequence[str], mark: str = "- ", indent: int = 0) -> Section:
    """Return a section of one list."""
    return Section(name, title, [Lines(lines, mark=mark)] if lines else [], indent=indent)


def not_seen(report: "Report", mark: str = "- ") -> Section:
    """Return the section on what was not seen."""
    return listed("not-seen", NOT_SEEN, report["not_seen"], mark)
