"""A shell script in a YAML value, at its place in the whole file."""

from collections.abc import Sequence
from dataclasses import replace

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command

_LONG_ESCAPES = {"x": 4, "u": 6, "U": 10}


def scalar_commands(node: Node, index: LineIndex) -> tuple[Command, ...]:
    """Return the commands of a shell script that is a YAML scalar of any style. Raises UnreadableText."""
    # Reading shell costs start-up time that other files should not pay.
    from rlaudit.configs.syntax.shell_text import commands

    if not isinstance(node.value, str):
        return ()
    nested = commands(node.value, index.path, index.part(scalar_origins(index.text, node)))
    block = index.text[node.place.start : node.place.start + 1] == "|"
    return tuple(replace(command, nested=command.nested and not (block and _literal(command))) for command in nested)


def _literal(command: Command) -> bool:
    """Return whether the file shows the command as a script would: in a literal block, outside of quotes."""
    first = command.words[0]
    return first.place.end - first.place.start == len(first.text)


def scalar_origins(text: str, node: Node) -> list[int]:
    """Return the offset in `text` of every character of a YAML string, and of its end.

    The two are walked side by side: YAML only leaves out indentation and escapes, and folds line ends.
    """
    at, end = node.place.start, node.place.end
    style = text[at : at + 1]
    if style in {"|", ">"}:
        newline = text.find("\n", at, end)
        at = end if newline < 0 else newline + 1
    elif style in {'"', "'"}:
        at += 1
    origins = []
    for character in node.value:
        blank = character in " \n"
        while at < end and not (text[at] == character or (blank and text[at] in "\r\n") or _escaped(text, at, style)):
            at += 1
        origins.append(min(at, max(node.place.start, end - 1)))
        at += _length(text, at, style)
    return [*origins, (origins[-1] + 1 if origins else node.place.start)]


def _escaped(text: str, at: int, style: str) -> bool:
    return style == '"' and text[at] == "\\" and text[at + 1 : at + 2] not in {"\n", "\r"}


def _length(text: str, at: int, style: str) -> int:
    """Return how many characters of the file one character of the string takes."""
    if style == '"' and text[at : at + 1] == "\\":
        return _LONG_ESCAPES.get(text[at + 1 : at + 2], 2)
    return 2 if style == "'" and text.startswith("''", at) else 1


def words_of(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the elements of a list of words, numbers as the text that a container gets."""
    return tuple(
        replace(node, value=node.text or str(node.value)) if isinstance(node.value, bool | int | float) else node
        for node in nodes
    )
