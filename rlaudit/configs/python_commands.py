"""Commands that a Python program starts, written as a list of words: `subprocess.run(["vllm", "serve", model])`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.embedded import words_of
from rlaudit.configs.syntax.node import Node, Unknown

_FORMATTED = re.compile(r"[rR]?[fF][rR]?(\"\"\"|'''|\"|')")
_NAMED = re.compile(r"([A-Za-z_]\w*)(?:\s*:[^=\n]*)?\s*=\s*$")
_LAUNCHES = ("-m", "serve")


def python_commands(source: Source, wanted: Callable[[str], bool]) -> Iterator[tuple[tuple[Node, ...], Node]]:
    """The words of each list that starts something and holds a text that is wanted, and the list itself.

    A list that is extended later ends in an unknown word. Raises UnreadableText.
    """
    for display in source.displays(wanted):
        words = tuple(_shown(node) for node in words_of(display.elements()))
        if any(
            isinstance(word.value, str) and (word.value in _LAUNCHES or word.value.endswith(".py")) for word in words
        ):
            yield (*words, *_later(source.text, display)), display


def _shown(word: Node) -> Node:
    """A formatted text that is not told, without its `f` and quotes, so that the key before its value is seen."""
    opened = _FORMATTED.match(word.text) if isinstance(word.value, Unknown) else None
    if opened is None:
        return word
    skipped, closed = opened.end(), len(opened.group(1))
    place = replace(word.place, column=word.place.column + skipped, start=word.place.start + skipped)
    return Node(word.value, replace(place, end=word.place.end - closed), word.key, word.text[skipped:-closed])


def _later(text: str, display: Node) -> tuple[Node, ...]:
    named = _NAMED.search(text[max(0, display.place.start - 200) : display.place.start])
    if named is None or not re.search(rf"\b{named.group(1)}\s*(\.(append|extend|insert)\(|\+=)", text):
        return ()
    return (Node(Unknown("the program adds to the list"), display.place, None, f"what is added to {named.group(1)}"),)
