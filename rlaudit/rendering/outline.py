"""A report as blocks, in the order in which people read them: what every format for people draws.

A command says once what its report consists of (`outlines/`, a file for each kind of report); text, Markdown and HTML
know blocks and no command.
"""

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlaudit.printable import printable

if TYPE_CHECKING:
    from rlaudit.layers import Judgement
    from rlaudit.report.parts.inspection import Finding
    from rlaudit.report.report import Report

# A report that has one of these is about that, with any command.
PARTS_WITH_OUTLINES = ("weight_updates", "canary", "bump", "public_recording", "releases", "gates")
NOT_SEEN, COST = "Not seen", "Cost"


@dataclass(frozen=True)
class Lines:
    """A list, an item a line. mark: what text puts before each."""

    lines: Sequence[str]
    title: str = ""
    mark: str = "- "


@dataclass(frozen=True)
class Entries:
    """Names, each with what is said of it."""

    entries: Sequence[tuple[str, Sequence[str]]]
    title: str = ""


@dataclass(frozen=True)
class Prose:
    """Sentences that stand by themselves."""

    lines: Sequence[str]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells; the first cell names its row, and shorter rows end with empty cells.

    on_terminal: the columns that text has room for, None for all. headed: whether text shows the header. marked: the
    numbers of rows that stand out. values: whether cells are values of settings, to be shown as code.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    on_terminal: int | None = None
    headed: bool = True
    marked: frozenset[int] = frozenset()
    values: bool = False


@dataclass(frozen=True)
class Code:
    """What is to be pasted."""

    text: str
    language: str
    title: str = ""


@dataclass(frozen=True)
class Verdicts:
    """What is said of each layer, in the order in which layers must be judged."""

    layers: "Sequence[Judgement]"
    title: str = ""


@dataclass(frozen=True)
class Findings:
    """Findings with their places, the gravest first."""

    findings: "Sequence[Finding]"
    title: str = ""


@dataclass(frozen=True)
class Folded:
    """What a page opens when asked; text and Markdown leave it to the page, to -v and to the JSON report.

    kind: what its items are, in the plural, to count those that were left out.
    """

    summary: str
    block: "Table | Lines | Findings"
    title: str = ""
    kind: str = ""

    @property
    def number(self) -> int:
        """How many items it has."""
        match self.block:
            case Table(_, rows):
                return len(rows)
            case Lines(lines):
                return len(lines)
            case Findings(findings):
                return len(findings)


@dataclass(frozen=True)
class Brief:
    """The end of a long report on a terminal, on one screen: (indent, statement) pairs. Nothing else needs it."""

    statements: Sequence[tuple[int, str]]
    title: str = ""


Block = Lines | Entries | Prose | Table | Code | Verdicts | Findings | Folded | Brief


@dataclass(frozen=True)
class Section:
    """Blocks under a heading. name: of letters, digits and hyphens, unique in the report.

    also: further lines of the title. indent: of the title in text. gathers: text shows the titles of its blocks alone.
    leads: it stands before the pictures. closes: text ends with it, since the end is what a terminal shows.
    page_only: text and Markdown leave it to the page. terminal_only: so does everything but a terminal.
    """

    name: str
    title: str
    blocks: Sequence[Block]
    also: Sequence[str] = ()
    indent: int = 0
    gathers: bool = False
    leads: bool = False
    closes: bool = False
    page_only: bool = False
    terminal_only: bool = False


@dataclass(frozen=True)
class Indents:
    """How far text is indented: titles of blocks, lines, tables."""

    title: int = 0
    line: int = 3
    table: int = 3


@dataclass(frozen=True)
class Outline:
    """A whole report. title: what text, where `headed`, and a page begin with; lead: what it is about.

    facts: how much was looked at. about: lines below the title. pictured: the formats beside HTML that have pictures.
    unfolded_by: the option of the command with which text shows what a page folds, which text then names.
    """

    title: str
    sections: Sequence[Section]
    lead: str = ""
    facts: Sequence[str] = ()
    about: Sequence[str] = ()
    headed: bool = True
    indents: Indents = field(default_factory=Indents)
    pictured: frozenset[str] = frozenset({"text", "markdown"})
    unfolded_by: str = ""

    @property
    def left_out(self) -> str:
        """What text and Markdown leave out, and the option that shows it; empty if there is no such option."""
        numbers = Counter[str]()
        for block in (one for section in self.sections for one in section.blocks if isinstance(one, Folded)):
            numbers[block.kind] += block.number
        named = ", ".join(f"{kind} ({number})" for kind, number in numbers.items())
        return f"{self.unfolded_by} also shows: {named}." if named and self.unfolded_by else ""

    def shown(self, *, on_page: bool = False, on_terminal: bool = False) -> list[Section]:
        """Return the sections that have something to say there."""
        return [
            section
            for section in self.sections
            if section.blocks and (on_page or not section.page_only) and (on_terminal or not section.terminal_only)
        ]


def outline_of(report: "Report") -> Outline:
    """Return the outline, with nothing in it that a terminal would obey."""
    name = next((part for part in PARTS_WITH_OUTLINES if part in report), report["command"])
    # Only the requested one is imported: an inspection takes less time than all of them.
    outline: Outline = importlib.import_module(f"rlaudit.rendering.outlines.{name}").outline(printable(dict(report)))
    return outline


def verdicts(report: "Report", page_only: bool = False) -> Section:
    """Return what every command that judges begins with."""
    blocks = [Verdicts(report["layers"])] if report["layers"] else []
    return Section("verdicts", "Verdicts", blocks, gathers=True, leads=True, page_only=page_only)


def listed(name: str, title: str, lines: Sequence[str], mark: str = "- ", indent: int = 0) -> Section:
    """Return a section that is a list."""
    return Section(name, title, [Lines(lines, mark=mark)] if lines else [], indent=indent)


def not_seen(report: "Report", mark: str = "- ") -> Section:
    """Return what every report has to admit."""
    return listed("not-seen", NOT_SEEN, report["not_seen"], mark)
