"""Span edits: only the spans change, and what cannot be made together is known."""

import random

import pytest

from rlaudit.configs.syntax.edit import Edit
from rlaudit.inspection.fix import Misplaced, Span, apply, moved, overlap


def edit(start: int, end: int, text: str) -> Edit:
    return Edit("x", start, end, text)


def test_replacing_inserting_and_deleting_leave_the_rest() -> None:
    assert apply("0123456789", [edit(8, 9, ""), edit(2, 4, "ab"), edit(0, 0, ">")]) == ">01ab45679"


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (edit(0, 2, "a"), edit(2, 3, "b"), True),
        (edit(0, 2, "a"), edit(1, 3, "b"), False),
        (edit(1, 1, "a"), edit(1, 1, "b"), False),
        (edit(1, 1, "a"), edit(1, 2, "b"), False),
        (edit(0, 1, "a"), edit(2, 2, "b"), True),
    ],
)
def test_edits_that_touch_the_same_characters_cannot_be_made_together(
    first: Edit, second: Edit, together: bool
) -> None:
    assert overlap(first, second) is overlap(second, first) is not together


@pytest.mark.parametrize("wrong", [[edit(2, 1, "")], [edit(0, 99, "")], [edit(0, 3, "a"), edit(2, 4, "b")]])
def test_an_edit_that_does_not_fit_is_refused(wrong: list[Edit]) -> None:
    with pytest.raises(Misplaced):
        apply("0123456789", wrong)


@pytest.mark.parametrize("seed", range(50))
def test_spans_point_at_what_the_edits_wrote(seed: int) -> None:
    draw = random.Random(seed)
    text = "".join(draw.choices("ab\n", k=40))
    edits: list[Edit] = []
    for _ in range(8):
        start = draw.randrange(40)
        one = edit(start, min(40, start + draw.randrange(5)), "".join(draw.choices("XY", k=draw.randrange(4))))
        if not any(overlap(one, other) for other in edits):
            edits.append(one)
    after = apply(text, edits)
    spans = moved([], [(one, one.replacement) for one in edits])
    assert [after[span.start : span.end] for span in spans] == [span.by for span in spans]
    # A span of before moves with what is written in front of it.
    last = max(edits, key=lambda one: one.end)
    (kept,) = moved([Span(last.end, 40, "")], [(one, "") for one in edits])[:1]
    assert after[kept.start : kept.end] == text[last.end :]
