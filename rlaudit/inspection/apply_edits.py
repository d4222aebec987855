"""Span edits on a text: which can be made together, what the text is afterwards, where its old spans went."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rlaudit.configs.syntax.edit import Edit


@dataclass(frozen=True)
class Span:
    """Characters that an edit wrote, in the text as it is now. by: whose edit it was."""

    start: int
    end: int
    by: str


class Misplaced(ValueError):
    """An edit that does not fit the text it is for."""


def overlap(edit: Edit, other: Edit) -> bool:
    """Whether two edits of one text touch the same characters; two insertions at one place do, the order being open."""
    if edit.start == edit.end or other.start == other.end:
        return edit.start <= other.end and other.start <= edit.end
    return edit.start < other.end and other.start < edit.end


def undoes(edit: Edit, span: Span, text: str) -> bool:
    """Whether an edit changes what another one wrote. Adding to it does not, nor does writing a list anew."""
    if edit.start == edit.end or not (edit.start < span.end and span.start < edit.end):
        return False
    return text[span.start : span.end].strip("[]{}(), \n") not in edit.replacement


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with every edit made. Raises Misplaced for one outside the text, or two that overlap."""
    parts: list[str] = []
    done = 0
    for edit in _in_order(edits):
        if not done <= edit.start <= edit.end <= len(text):
            raise Misplaced(
                f"an edit of characters {edit.start} to {edit.end} does not fit the {len(text)} of {edit.path}"
            )
        parts += [text[done : edit.start], edit.replacement]
        done = edit.end
    return "".join([*parts, text[done:]])


def moved(spans: Sequence[Span], edits: Sequence[tuple[Edit, str]]) -> list[Span]:
    """Where old spans are after the edits, and the spans that the edits wrote; each edit comes with its author."""
    now = [Span(_after(span.start, edits), _after(span.end, edits), span.by) for span in spans]
    for edit, by in edits:
        start = edit.start + sum(_growth(other) for other, _ in edits if other.end <= edit.start and other != edit)
        now.append(Span(start, start + len(edit.replacement), by))
    return now


def _after(offset: int, edits: Sequence[tuple[Edit, str]]) -> int:
    return offset + sum(_growth(edit) for edit, _ in edits if edit.end <= offset)


def _growth(edit: Edit) -> int:
    return len(edit.replacement) - (edit.end - edit.start)


def _in_order(edits: Iterable[Edit]) -> list[Edit]:
    return sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end))
