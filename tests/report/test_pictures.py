"""Pictures in words: sparklines on a terminal, tables in Markdown, and the pieces that drawings are made of."""

import math
import re
import xml.etree.ElementTree as ET

import documents
import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases.cells import word_cell

from rlaudit.report.rendering.drawing.axes import both_sides, decades, short, thinned
from rlaudit.report.rendering.formats import markdown, text
from rlaudit.report.rendering.formats.text import BLOCKS, encodable, sparkline, sparklines
from rlaudit.report.rendering.html.markup import element
from rlaudit.report.rendering.html.svg import svg_of
from rlaudit.report.rendering.picture import Missing, Picture, Table, pictures_of
from rlaudit.report.rendering.pictures.releases import colours
from rlaudit.report.rendering.release_spans import ReleaseSpan


def test_a_sparkline_goes_from_the_lowest_block_to_the_highest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], [0, 7]) == BLOCKS
    assert sparkline([1, None, 9], [1, 9]) == "▁ █"
    assert sparkline([2.0, 2.0], [2.0]) == "▁▁"
    assert sparkline([], []) == ""


def test_the_lines_of_a_picture_have_one_scale() -> None:
    document = documents.curves()
    for point in document["curves"]["metrics"][0]["points"]:
        point |= {"reference": 0.001, "candidate": 1.0 + point["step"]}
    reference, candidate = sparklines(documents.records(document), None).splitlines()[2:4]
    assert "reference" in reference and set(reference) & set(BLOCKS) == {BLOCKS[0]}
    assert "candidate" in candidate and BLOCKS[-1] in candidate


def test_a_curve_is_drawn_with_the_means_that_its_verdict_rests_on() -> None:
    (picture, *_), _ = pictures_of(documents.records(documents.curves()))
    assert re.search(
        r"Separated at step \d+, from about step \d+ on: mean \S+ against \S+ \(thick\)\.", picture.caption
    )
    thick = [line for line in ET.fromstring(str(svg_of(picture))).iter() if "stroke-width: 4" in line.get("style", "")]
    assert len(thick) == 2


@pytest.mark.parametrize(("encoding", "can"), [("utf-8", True), ("ascii", False), ("latin-1", False), (None, False)])
def test_blocks_are_drawn_only_where_a_stream_can_carry_them(encoding: str | None, can: bool) -> None:
    assert encodable(encoding) is can


@pytest.mark.parametrize("width", [60, 80, 120, 200, None])
def test_the_text_report_ends_with_lines_of_blocks_that_fit(width: int | None) -> None:
    curves = documents.records(documents.curves())
    drawn = sparklines(curves, width)
    assert text.render(curves, width).endswith(drawn)
    assert sum(bool(set(line) & set(BLOCKS)) for line in drawn.splitlines()) == 4
    assert width is None or max(len(line) for line in drawn.splitlines()) <= width
    assert "rl/kl_new_old, candidate" in drawn


def test_markdown_has_the_numbers_of_every_picture() -> None:
    document = documents.records(documents.ablation())
    report = markdown.render(document, None)
    drawn, missing = pictures_of(document)
    assert drawn and missing
    for picture in drawn:
        assert f"### {picture.full_title}" in report
    assert all(one.reason in report for one in missing)
    assert all(line.startswith("| ") for line in report.splitlines() if line.startswith("|"))


def test_an_inspection_says_why_it_has_no_pictures() -> None:
    drawn, missing = pictures_of(documents.records(documents.empty("inspect", 0)))
    assert (drawn, len(missing)) == ([], 1)
    assert isinstance(missing[0], Missing)
    assert "measures nothing" in missing[0].reason


@given(st.floats(1e-12, 1e6), st.floats(1.5, 1e9))
def test_ticks_of_a_logarithm_lie_inside_and_are_few(low: float, times: float) -> None:
    ticks = decades(low, low * times)
    assert len(ticks) <= 8
    assert all(low * 0.999 <= tick <= low * times * 1.001 for tick in ticks)


def test_ticks_of_both_signs_are_symmetric_with_zero_in_the_middle() -> None:
    ticks = both_sides(0.01, 1000)
    assert ticks == sorted(ticks)
    assert [-one for one in reversed(ticks)] == ticks
    assert len(ticks) <= 9


@pytest.mark.parametrize(("value", "written"), [(0, "0"), (0.25, "0.25"), (-10, "−10"), (1e-7, "1e−7"), (1e6, "1e6")])
def test_numbers_on_axes_are_short(value: float, written: str) -> None:
    assert short(value) == written


def test_crowded_labels_are_thinned() -> None:
    assert thinned(list("abcdef"), 3) == ["a", "", "c", "", "e", ""]


def test_text_between_tags_and_in_attributes_is_escaped_and_markup_is_not() -> None:
    made = element("p", "<b> & ", element("i", "x"), title="\"'<")
    assert made == '<p title="&quot;&#x27;&lt;">&lt;b&gt; &amp; <i>x</i></p>'


def test_a_drawing_keeps_words_as_words_and_mathematics_of_others_as_text() -> None:
    def draw(figure):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.text(0.5, 0.5, "$\\frac{1}{0}$ <script> 日本語")

    drawn = svg_of(Picture("one", "One", "A caption.", Table(["a"], [["b"]]), 100, draw))
    words = [one.text for one in ET.fromstring(drawn).iter() if one.tag == "text"]
    assert "$\\frac{1}{0}$ <script> 日本語" in words


def test_a_word_that_comes_back_at_a_later_release_has_its_first_colour() -> None:
    words = ["runs", "failed", "runs", "not there"]
    first, second, again, third = colours(
        [ReleaseSpan([str(number)], word_cell(word)) for number, word in enumerate(words)]
    )
    assert first == again and len({first, second, third}) == 3


def test_every_picture_of_the_example_is_drawn_from_finite_numbers() -> None:
    drawn, _ = pictures_of(documents.records(documents.ablation()))
    numbers = re.findall(r"(?<=[ LM])-?\d+\.?\d*|nan|inf", " ".join(svg_of(one) for one in drawn[:4]))
    assert numbers and all(math.isfinite(float(one)) for one in numbers)
