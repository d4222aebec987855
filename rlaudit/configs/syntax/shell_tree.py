"""A shell script as the grammar of tree-sitter-bash reads it, with every node at its character.

The grammar reads a text of the same length, so that its offsets in bytes are offsets in characters. In that text a
character outside ASCII is a dot, a line end of Windows is a blank and a line end, `<your_model>` is a word, a
backslash at the end is a blank, and arithmetic in a default has no inner brackets.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rlaudit.configs.syntax.unreadable import UnreadableText

if TYPE_CHECKING:
    from tree_sitter import Node as Tree
    from tree_sitter import Parser

MOST_CHARACTERS = 500_000
# With 20,000 brackets that nothing closes, the grammar takes 14 s of the processor (2026-11-24).
DEEPEST_BRACKET = 200
_BRACKET = re.compile(r"[()]")
_OUTSIDE_ASCII = re.compile(r"[^\x00-\x7f]")
# `--model <your_model>`: two redirections to a shell, a placeholder to its author.
_PLACEHOLDER = re.compile(r"(?<!<)<[A-Za-z][\w./-]*>(?=[ \t]*(?:\\?\r?\n|$)|[ \t]+[-<])")
# `${N:-$(((A + B) * 2))}`: brackets of arithmetic in a default, which the grammar takes for commands.
_ARITHMETIC_OF_A_DEFAULT = re.compile(r"(?<=[-=+]\$\(\()[\w \t+*/%()$-]*(?=\)\)[\"']?\})")
_CONTINUES_WITH_NOTHING = re.compile(r"\\(?=\s*\Z)")


def parsed(text: str) -> "Tree":
    """Return the root of a script's tree. Raises UnreadableText."""
    if len(text) > MOST_CHARACTERS:
        raise UnreadableText(f"more than {MOST_CHARACTERS} characters")
    if "\0" in text:
        raise UnreadableText("not a text file", text.count("\n", 0, text.index("\0")) + 1)
    _refuse_brackets(text)
    same_length = _PLACEHOLDER.sub(lambda match: "." * len(match.group()), text)
    same_length = _ARITHMETIC_OF_A_DEFAULT.sub(lambda match: re.sub("[()]", " ", match.group()), same_length)
    same_length = same_length.replace("\\\r\n", " \\\n").replace("\r\n", " \n")
    same_length = _CONTINUES_WITH_NOTHING.sub(" ", _OUTSIDE_ASCII.sub(".", same_length))
    return _parser().parse(same_length.encode("ascii")).root_node


def _refuse_brackets(text: str) -> None:
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket.group() == "(" else max(0, depth - 1)
        if depth > DEEPEST_BRACKET:
            line = text.count("\n", 0, bracket.start()) + 1
            raise UnreadableText(f"more than {DEEPEST_BRACKET} brackets are open", line)


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    # Loading the grammar costs start-up time that a file without shell should not pay.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def damage(tree: "Tree") -> "Tree | None":
    """Return the first node that the grammar could not read, or made up; None if the script is whole. An error inside
    arithmetic with closed brackets affects only its number.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR" or node.is_missing:
            return node
        closed = node.type == "arithmetic_expansion" and node.children[-1].type == "))"
        if node.has_error and not (closed and not node.children[-1].is_missing):
            waiting += reversed(node.children)
    return None


def begun(broken: "Tree") -> int:
    """Return where damage begins: at the opening of what is never closed, or at the last part of a long error."""
    if broken.is_missing and broken.parent is not None:
        return broken.parent.start_byte
    while broken.type == "ERROR" and broken.children:
        broken = broken.children[-1]
    return broken.start_byte
