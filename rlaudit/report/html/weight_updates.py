"""Sections of a weight-update audit: what was found, the matrix, lags, what each path updates, the calls to use."""

from collections.abc import Sequence

from rlaudit.report import weight_updates_words as words
from rlaudit.report.html.lists import list_section
from rlaudit.report.html.markup import Markup, element, joined
from rlaudit.report.html.parts import code, table
from rlaudit.report.html.section import Section
from rlaudit.report.report_format import Document


def sections(document: Document) -> list[Section | None]:
    """In reading order."""
    return [
        _conclusions(document),
        _table("sequences", "Sequences of calls", words.sequences(document)),
        _table("lag-table", "Tokens in flight by version lag", words.lags(document)),
        list_section("updated", "What is updated", words.parts(document)),
        _table("decay", "Stale keys and values by distance from the cached blocks", words.decay(document)),
        list_section("survival", "Stale keys and values over several updates", words.survival(document)),
        list_section("faults", "Updates that had to fail", words.faults(document)),
        _calls(document),
        list_section("cost", "Cost", [words.cost(document)]),
    ]


def title(document: Document) -> str:
    """The releases."""
    versions = dict.fromkeys(case["version"] for case in document["weight_updates"]["cases"])
    return f"Weight updates in vLLM {', '.join(versions)}"


def facts(document: Document) -> list[str]:
    """How much was run."""
    cases = document["weight_updates"]["cases"]
    return [f"{len(cases)} cases on {len({case['start'] for case in cases})} engines"]


def _conclusions(document: Document) -> Section | None:
    rows = [
        [one["rule"], one["severity"], one["found"], one["sure"], one["next"], one["reproduce"] or ""]
        for one in document["weight_updates"]["conclusions"]
    ]
    header = ["what", "severity", "found", "how sure", "next", "see it again"]
    return _table("conclusions", "What was found", [header, *rows])


def _table(name: str, title: str, rows: Sequence[Sequence[str]]) -> Section | None:
    return Section(name, title, table(rows[0], rows[1:], title)) if len(rows) > 1 else None


def _calls(document: Document) -> Section | None:
    parts = [
        joined(element("h3", heading), element("p", because), code(text) if text else Markup(""))
        for heading, because, text in words.calls(document)
    ]
    return Section("calls", "Calls to use", joined(parts)) if parts else None
