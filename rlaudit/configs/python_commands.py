"""Commands that a Python program starts, written as a list of words: `subprocess.run(["vllm", "serve", model])`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.embedded import words_of
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_lists import GrownList

_FORMATTED = re.compile(r"[rR]?[fF][rR]?(\"\"\"|'''|\"|')")
_NAMED = re.compile(r"([A-Za-z_]\w*)(?:\s*:[^=\n]*)?\s*=\s*$")
_LAUNCHES = ("-m", "serve", "vllm-serve")


def python_commands(source: Source, wanted: Callable[[str], bool]) -> Iterator[tuple[tuple[Node, ...], Node]]:
    """Yield the words of each list that starts something and holds a text that is wanted, and the list itself.

    What is added to it later follows; a list that is extended by an unknown value, or under a condition, ends in an
    unknown word. Raises UnreadableText.
    """
    for grown in source.grown_lists(wanted):
        words = tuple(_shown(node) for node in words_of(grown.display.elements()))
        if any(
            isinstance(word.value, str) and (word.value in _LAUNCHES or word.value.endswith(".py")) for word in words
        ):
            yield (*words, *_later(grown, _grows(source.text, grown.display))), grown.display


def conditional_words(source: Source, display: Node, wanted: Callable[[str], bool]) -> tuple[tuple[Node, ...], ...]:
    """Return what is added to a list under a condition, one tuple for each place."""
    found = (one for one in source.grown_lists(wanted) if one.display.place.start == display.place.start)
    grown = next(found, None) if _grows(source.text, display) else None
    return grown.maybe if grown is not None else ()


def _shown(word: Node) -> Node:
    """Return a formatted text of unknown value without its `f` and quotes, so that the key before the value is seen."""
    opened = _FORMATTED.match(word.text) if isinstance(word.value, Unknown) else None
    if opened is None:
        return word
    skipped, closed = opened.end(), len(opened.group(1))
    place = replace(word.place, column=word.place.column + skipped, start=word.place.start + skipped)
    return Node(word.value, replace(place, end=word.place.end - closed), word.key, word.text[skipped:-closed])


def _grows(text: str, display: Node) -> str:
    """Return the name of a list that anything is added to later."""
    named = _NAMED.search(text[max(0, display.place.start - 200) : display.place.start])
    name = named.group(1) if named is not None else ""
    if not name or not re.search(rf"\b{name}\s*(\.(append|extend|insert)\(|\+=|=\s*{name}\s*\+)", text):
        return ""
    return name


def _later(grown: GrownList, name: str) -> tuple[Node, ...]:
    if not name:
        return ()
    more = tuple(_shown(node) for node in words_of(grown.words[len(grown.display.elements()) :]))
    if more and not grown.maybe and not grown.open:
        return more
    return (*more, Node(Unknown("the program adds to the list"), grown.display.place, None, f"what is added to {name}"))
