"""The HTML report of every command: self-contained, escaped, in order, small and quick."""

import re
import sys
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import documents
import pytest

from rlaudit.report.rendering.formats import html, markdown, text

MAKERS = (documents.ablation, documents.comparison, documents.curves, documents.diagnosis)
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
LARGEST = 1_500_000
# Three times what it takes; it is the same for a tenth of the tokens. Calls are counted, and no machine is timed.
MOST_CALLS = 3_000_000


class Seen(HTMLParser):
    """Tags with their attributes, headings in order, ids, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def of(self, name: str) -> list[str]:
        """All values of an attribute."""
        return [value for key, value in self.attributes if key == name]

    @property
    def text(self) -> str:
        """Everything to be read, in a row."""
        return " ".join(" ".join(self.words).split())


@cache
def rendered(maker: Callable[[], dict[str, Any]]) -> str:
    """The page of a document, drawn once for all tests."""
    return html.render(documents.records(maker()), None)


def one_block(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its last block of arms alone, which is quicker to draw."""
    if "blocks" not in document:
        return document
    block = document["blocks"][-1]
    own = {
        name: [one for one in document[name] if one["block"] == block["name"]]
        for name in ("arms", "effects", "token_figures")
    }
    return {**document, **own, "blocks": [block]}


@pytest.fixture(scope="module", params=MAKERS, ids=lambda maker: maker.__name__)
def maker(request: pytest.FixtureRequest) -> Callable[[], dict[str, Any]]:
    made: Callable[[], dict[str, Any]] = request.param
    return made


@pytest.fixture
def document(maker: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return maker()


@pytest.fixture
def page(maker: Callable[[], dict[str, Any]]) -> str:
    return rendered(maker)


def test_nothing_is_loaded_and_nothing_runs(page: str) -> None:
    seen = Seen(page)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert all(value.startswith("#") for value in seen.of("href"))
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in seen.of("content")[0]
    assert not re.search(r"url\((?!#)|@import|https?://", page)


def test_ids_are_unique_and_every_reference_has_one(page: str) -> None:
    seen = Seen(page)
    ids = seen.of("id")
    assert len(ids) == len(set(ids))
    wanted = {value[1:] for value in seen.of("href")} | set(re.findall(r"url\(#([^)]+)\)", page))
    assert wanted <= set(ids)


def test_headings_leave_no_level_out(page: str) -> None:
    levels = [int(tag[1]) for tag in Seen(page).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_a_drawing_has_a_caption_a_name_and_its_numbers_as_a_table(page: str) -> None:
    seen = Seen(page)
    assert seen.tags.count("svg") == seen.tags.count("figure") == seen.tags.count("figcaption")
    assert seen.of("role").count("img") == seen.tags.count("svg")
    for figure in re.findall(r"<figure.*?</figure>", page, re.DOTALL):
        assert figure.index("<figcaption>") < figure.index("<svg") < figure.index("<details>") < figure.index("<table>")


def test_colours_come_from_the_style_sheet(page: str) -> None:
    drawings = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert not re.search(r"#[0-9a-fA-F]{6}\b", drawings)
    assert "prefers-color-scheme: dark" in page and "@media print" in page


def test_verdicts_come_before_any_figure_and_what_was_not_seen_is_said(document: dict[str, Any], page: str) -> None:
    for layer in document["layers"]:
        assert layer["because"].replace(" -> ", " → ") in Seen(page).text
    if document["layers"] and "<figure" in page:
        assert page.index('id="verdicts"') < page.index("<figure")
    assert all(" ".join(line.split()) in Seen(page).text for line in document["not_seen"])


def test_an_ablation_has_every_picture_of_every_block_or_the_reason_why_not() -> None:
    seen = Seen(rendered(documents.ablation)).text
    for title in ("Distance from the trainer", "Ratio deviation", "Effects of the factors on mean ratio - 1",
                  "Effects of the factors on k2", "Density of d", "|d| by position", "|d| by entropy",
                  "Rollout against trainer probability"):  # fmt: skip
        assert title in seen
    assert "Version lag: every arm loads its weights once" in seen


def test_every_arm_is_in_the_forest_with_its_interval_or_its_state() -> None:
    document = documents.ablation()
    page = rendered(documents.ablation)
    forests = re.findall(r'<figure id="arms-.*?</figure>', page, re.DOTALL)
    rows = [row for forest in forests for row in re.findall(r"<tr><th scope=\"row\".*?</tr>", forest)]
    assert len(rows) == len(document["arms"])
    assert sum("unsupported" in row for row in rows) == 1


def test_a_picture_without_data_says_why_in_a_line() -> None:
    document = documents.ablation() | {"effects": []}
    del document["token_figures"]
    document["arms"] = [{**arm, "measurements": {}} for arm in document["arms"]]
    seen = Seen(html.render(documents.records(document), None)).text
    assert "Distance from the trainer, arm by arm, Ratio deviation × 10⁴: no arm has been measured" in seen
    assert "Density of d" in seen and "the report holds no figures of tokens" in seen


def test_markup_in_any_text_of_a_report_is_shown_and_not_obeyed(document: dict[str, Any]) -> None:
    hostile = documents.made_hostile(one_block(document))
    page = html.render(documents.records(hostile), None)
    seen = Seen(page)
    assert not {"script", "img"} & set(seen.tags)
    assert all(value.startswith("#") for value in seen.of("href"))
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert '<script>alert("ran")</script>' in seen.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800]", page)


def test_markdown_and_text_of_a_hostile_report_hold_no_markup_and_no_control_characters(
    document: dict[str, Any],
) -> None:
    hostile = documents.made_hostile(one_block(document))
    marked = markdown.render(documents.records(hostile), None)
    assert not re.search(r"(?<!\\)<(script|img|a )", FENCED.sub("", marked))
    for report in (marked, text.render(documents.records(hostile), None), text.render(documents.records(hostile), 80)):
        assert not re.search("[\x00-\x08\x0b-\x1a\x1c-\x1f\u202e\ud800]", report)
    assert "\x1b" not in text.render(documents.records(hostile), None)


def counted(work: Callable[[], str]) -> tuple[str, int]:
    """Return what it returns, and how many Python functions it called."""
    calls, before = [0], sys.getprofile()

    def count(_frame: object, event: str, _argument: object) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        return work(), calls[0]
    finally:
        sys.setprofile(before)


def test_a_report_of_nineteen_arms_and_a_million_tokens_is_small_and_quick() -> None:
    document = documents.ablation()
    document["token_figures"] = [
        documents.token_figures(arm["name"], arm["block"], arm, tokens=54_000) for arm in document["arms"]
    ]
    assert len(document["arms"]) == 19 and sum(one["tokens"] for one in document["token_figures"]) > 1_000_000
    page, calls = counted(lambda: html.render(documents.records(document), None))
    assert calls < MOST_CALLS
    assert len(page.encode()) < LARGEST
