"""Outlines: every kind of report has one, and every format for people draws every block of it."""

import pkgutil
from collections.abc import Callable
from typing import Any

import documents
import pytest

from rlaudit.report.rendering import outlines
from rlaudit.report.rendering.formats import markdown, text
from rlaudit.report.rendering.html.blocks import titled
from rlaudit.report.rendering.outline import (
    Brief,
    Code,
    Entries,
    Folded,
    Indents,
    Lines,
    Outline,
    Prose,
    Section,
    Table,
    outline_of,
)

MAKERS = (documents.ablation, documents.comparison, documents.curves, documents.diagnosis)
BLOCKS = [
    Lines(["a line"], "its title"),
    Entries([("a line", ["more of it"])], "its title"),
    Prose(["a line"], "its title"),
    Table(["name", "figure"], [["a line", "1"], ["short"]], "its title"),
    Code("a line", "yaml", "its title"),
]


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_sections_have_names_of_their_own_and_say_something(maker: Callable[[], dict[str, Any]]) -> None:
    shown = outline_of(documents.records(maker())).shown(on_page=True, on_terminal=True)
    names = [section.name for section in shown]
    assert len(names) == len(set(names))
    assert all(section.title and section.blocks for section in shown)


def test_a_file_is_named_after_each_kind_of_report() -> None:
    found = {module.name for module in pkgutil.iter_modules(outlines.__path__)}
    kinds = {
        "ablate",
        "bump",
        "canary",
        "compare",
        "curves",
        "diagnose",
        "gates",
        "inspect",
        "learned_gates",
        "probe",
        "releases",
        "weight_updates",
    }
    assert found == kinds


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_a_block_is_drawn_by_every_format(block: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    outline = Outline("a title", [Section("one", "a section", [block])], pictured=frozenset())
    for renderer in (text, markdown):
        monkeypatch.setattr(renderer, "outline_of", lambda _document: outline)
        said = renderer.render({}, None)
        assert said.index("a title") < said.index("a section") < said.index("its title") < said.index("a line")
    page = titled(block)
    assert page.index("its title") < page.index("a line")


def test_what_only_a_page_or_a_screen_has_room_for_is_left_out_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    sections = [
        Section("all", "All metrics", [Folded("open me", Lines(["every metric"]))]),
        Section("page", "On the page", [Lines(["settings"])], page_only=True),
        Section("end", "In short", [Brief([(1, "what was found")])], closes=True, terminal_only=True),
    ]
    outline = Outline("a title", sections, indents=Indents(), pictured=frozenset())
    monkeypatch.setattr(text, "outline_of", lambda _document: outline)
    piped, screen = text.render({}, None), text.render({}, 80)
    assert "every metric" not in piped and "settings" not in piped and "what was found" not in piped
    assert screen.rstrip().endswith("what was found")
    assert "every metric" in titled(sections[0].blocks[0])
    assert [section.name for section in outline.shown(on_page=True)] == ["all", "page"]
