"""The HTML report in a real browser: no width overflows, nothing is said or fetched, scripts are not needed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import documents
import pytest

from rlaudit.report.rendering.formats import html

WIDTHS = (400, 1024, 1600)
SCHEMES = ("light", "dark")
SIZES = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
# Parts that stick out of the page, without those inside a frame that scrolls by itself.
OUTSIDE = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll, pre, .skip')
    && one.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(one => one.outerHTML)"""
# Texts of drawings that lie outside their drawing or over another text of it.
CLASHES = """[...document.querySelectorAll('svg')].flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll('text')].map(one => [one.textContent, one.getBoundingClientRect()]);
    const clash = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    return boxes.filter(([, box], place) => box.right > frame.right + 12 || box.left < frame.left - 12
        || boxes.slice(place + 1).some(([, other]) => clash(box, other))).map(([text]) => text);
})"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"

pytestmark = pytest.mark.skipif(
    browser.chromium() is None, reason=f"no Chromium on this machine (looked for {', '.join(browser.NAMES)})"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.started() as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "report.html"
    path.write_text(html.render(documents.records(documents.ablation()), None), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_and_nothing_is_said(chromium: Any, report: Path, width: int, scheme: str) -> None:
    page = browser.Page(chromium, report, width, scheme, scripts=False)
    try:
        wide, room = page.ask(SIZES)
        assert wide <= room == width
        assert page.ask(OUTSIDE) == []
        assert page.ask(CLASHES) == []
        assert (page.said, page.asked_for) == ([], [])
    finally:
        page.close()


def test_light_and_dark_are_different_pages_of_the_same_words(chromium: Any, report: Path) -> None:
    found = []
    for scheme in SCHEMES:
        page = browser.Page(chromium, report, 1024, scheme, scripts=False)
        found.append((page.ask(BACKGROUND), page.ask("document.body.innerText")))
        page.close()
    (light, words), (dark, same_words) = found
    assert light != dark
    assert words == same_words


def test_tables_of_numbers_open_by_keyboard_without_scripts(chromium: Any, report: Path) -> None:
    page = browser.Page(chromium, report, 1024, "light", scripts=False)
    try:
        page.page.focus("#arms-block0 summary")
        page.page.keyboard.press("Enter")
        assert page.ask("document.querySelector('#arms-block0 details').open") is True
        assert "candidate again" in page.ask("document.querySelector('#arms-block0 table').innerText")
    finally:
        page.close()


def test_the_first_key_leads_to_the_report(chromium: Any, report: Path) -> None:
    page = browser.Page(chromium, report, 1024, "light", scripts=False)
    try:
        page.page.keyboard.press("Tab")
        assert page.ask("document.activeElement.textContent") == "Skip to the report"
        page.page.keyboard.press("Enter")
        assert page.ask("document.activeElement.id") == "report"
    finally:
        page.close()


def test_printed_it_is_dark_on_white_and_every_figure_is_whole(chromium: Any, report: Path, tmp_path: Path) -> None:
    page = browser.Page(chromium, report, 1024, "dark", scripts=False)
    try:
        page.page.emulate_media(media="print")
        assert page.ask(BACKGROUND) == "rgb(255, 255, 255)"
        assert page.ask("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"
        assert page.page.pdf(path=tmp_path / "report.pdf").startswith(b"%PDF")
    finally:
        page.close()


def test_a_hostile_report_runs_nothing_and_fetches_nothing_although_scripts_are_allowed(
    chromium: Any, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.html"
    found = documents.ablation()
    block = found["blocks"][-1]["name"]
    small = {
        **found,
        **{
            name: [one for one in found[name] if one["block"] == block] for name in ("arms", "effects", "token_figures")
        },
        "blocks": found["blocks"][-1:],
    }
    path.write_text(html.render(documents.records(documents.made_hostile(small)), None), encoding="utf-8")
    page = browser.Page(chromium, path, 400, "light", scripts=True)
    try:
        assert (page.said, page.asked_for) == ([], [])
        assert page.ask("document.querySelectorAll('script, img, iframe').length") == 0
        assert page.ask("[...document.links].every(link => link.getAttribute('href').startsWith('#'))") is True
        assert '<script>alert("ran")</script>' in page.ask("document.querySelector('.layer').innerText")
        wide, room = page.ask(SIZES)
        assert wide <= room
    finally:
        page.close()
