"""The first screen is the answer: what the move changes, what to set, what is so today, then layers by sides."""

import documents
import pytest

from rlaudit.report.rendering.formats import html, markdown, text

SENTENCES = documents.move()["answer"]


@pytest.mark.parametrize("width", [None, 80, 100, 160])
def test_text_begins_with_the_answer_and_has_the_layers_of_both_sides_in_columns(width):
    lines = text.render(documents.records(documents.ablation()), width).replace("\x1b[2m", "").splitlines()
    screen = "\n".join(lines[:20])
    assert " ".join(SENTENCES) in " ".join(screen.replace("\x1b[0m", "").split())
    rows = [line.split() for line in lines[:18]]
    assert ["the", "move", "same", "nearer", "-"] in rows
    assert ["today", "(0.8.5)", "filters-not-replayed", "-", "-"] in rows


@pytest.mark.parametrize("rendered", [markdown.render, html.FORMAT.render])
def test_other_formats_begin_with_it_too(rendered):
    page = rendered(documents.records(documents.ablation()), None)
    assert page.index("does not change what the logprobs mean") < page.index("raw logprobs: reported")


def test_a_report_of_no_move_says_nothing_of_one():
    document = documents.ablation()
    del document["move"]
    assert "the move" not in text.render(documents.records(document), None)
