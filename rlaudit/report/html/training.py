"""Sections of a comparison of training curves: the order of separation, every metric, how it was tested."""

from rlaudit.report import curves_words as words
from rlaudit.report.html.lists import list_section
from rlaudit.report.html.parts import table
from rlaudit.report.html.section import Section
from rlaudit.report.report_format import Document


def sections(document: Document) -> list[Section | None]:
    """In reading order."""
    return [
        _metrics(document),
        list_section("meaning", "What they are", (
            f"{metric['name']}: {'. '.join(words.details(metric))}" for metric in words.compared(document)
        )),
        list_section("runs", "Runs", words.runs(document)),
        list_section("not-used", "Not used", words.problems(document)),
        list_section("method", "Method", words.method(document)),
    ]  # fmt: skip


def lead(document: Document) -> Section | None:
    """What separated first: it stands where other reports have their verdicts."""
    order = document["curves"]["order"]
    return list_section("order", f"Order: {order['precedence']}", words.order(document))


def title(document: Document) -> str:
    """How many metrics separated."""
    return words.headline(document)


def facts(document: Document) -> list[str]:
    """How much was compared."""
    return [f"{len(words.compared(document))} metrics compared"]


def _metrics(document: Document) -> Section | None:
    rows = words.rows(document)
    return Section("metrics", "Metrics", table(words.HEADER, rows, "Metrics")) if rows else None
