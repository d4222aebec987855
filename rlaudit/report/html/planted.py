"""Sections of a self-test: the targets, the confusion matrix, what was missed."""

from rlaudit.report import selftest_words as words
from rlaudit.report.html.lists import list_section
from rlaudit.report.html.parts import table
from rlaudit.report.html.section import Section
from rlaudit.report.report_format import Document


def sections(document: Document) -> list[Section | None]:
    """In reading order."""
    targets, cells = words.targets(document), words.cells(document)
    return [
        Section("targets", "Targets", table(words.TARGETS, targets, "Targets")) if targets else None,
        list_section("missed", "Below their target", words.missed(document)),
        Section("cells", "What was planted and what was named", table(words.CELLS, cells, "Confusion matrix")),
    ]


def title(document: Document) -> str:
    """What it is."""
    return "Self-test of the attribution"


def facts(document: Document) -> list[str]:
    """How much was planted."""
    return [f"{sum(one['trials'] for one in document['selftest']['cells'])} trials"]
