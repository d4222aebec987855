"""The end of an ablation on a terminal: what was found, how sure it is, what to do next, in at most 40 lines.

A terminal shows the end of a long report, and what matters stands at its beginning. A pipe or a file needs no second
telling, so it gets none.
"""

import textwrap
from collections.abc import Iterator

from rlaudit.printable import one_line, printable
from rlaudit.report.report_format import Document

MOST_LINES = 40
NARROWEST = 40
# Lines of one statement, from the most that are worth it to what fits the narrowest terminal.
ROOM = (6, 4, 3, 2, 1)


def render(document: Document, width: int | None) -> str:
    """Nothing where nobody sits in front of it (`width` None)."""
    if width is None:
        return ""
    document = printable(dict(document))
    for room in ROOM:
        lines = list(_lines(document, max(width, NARROWEST), room))
        if len(lines) <= MOST_LINES:
            break
    return "\n".join(["", *lines]) + "\n"


def _lines(document: Document, width: int, room: int) -> Iterator[str]:
    yield "In short"
    for number, layer in enumerate(document["layers"], start=1):
        cause = f": {layer['cause']}" if layer["cause"] else ""
        yield from _said(f"{number}. {layer['layer']} {layer['verdict'].upper()}{cause}", 1, width, room)
        yield from _said(f"because {layer['because']}", 4, width, room)
    yield from _said(_how_sure(document), 1, width, room)
    yield from _said(f"next: {_next(document)}", 1, width, room)


def _said(text: str, indent: int, width: int, room: int) -> list[str]:
    """One statement in at most `room` lines."""
    return textwrap.wrap(
        one_line(text),
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        max_lines=room,
        placeholder=" …",
    )


def _how_sure(document: Document) -> str:
    """What the verdicts rest on, and what they do not."""
    measured = [arm for arm in document["arms"] if arm["measurements"]]
    lost = len(document["arms"]) - len(measured)
    tokens = sum(arm["measurements"]["k3"]["tokens"] for arm in measured)
    sequences = sum(arm["measurements"]["k3"]["sequences"] for arm in measured)
    missing = f"; arms without a figure: {lost}" if lost else ""
    return (
        f"how sure: {tokens} tokens in {sequences} sequences of {len(measured)} arms, 95 % intervals over prompts, "
        f"effects paired by prompt{missing}; {len(document['not_seen'])} things were not seen (listed above)"
    )


def _next(document: Document) -> str:
    """What the first layer that does not match asks for."""
    unsettled = [layer for layer in document["layers"] if layer["verdict"] != "match"]
    return str(unsettled[0]["next"]) if unsettled else "nothing: all three layers match on these prompts"
