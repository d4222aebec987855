"""The commands of a file: a shell script's, and those written as strings or lists inside YAML (beaker, k8s, CI)."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.command_edits import flags_writer, list_writer
from rlaudit.configs.syntax.embedded import scalar_commands
from rlaudit.configs.syntax.flags import flags
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command, further_words
from rlaudit.configs.syntax.spelling import Spell, Write, apply
from rlaudit.settings.place import Edit
from rlaudit.unknown import Unknown

_YAML = {".yaml", ".yml"}
_PLAIN = re.compile(r"[\w.=+-]+")
# Every edit that is proved reads the whole file again.
MOST_PROVED = 60


class WordList(Command):
    """A command that is a list of YAML, one word an element."""


def line_writer(command: Command, at: int, spell: Spell, source: Source) -> Write:
    """Writes options of a command whose options begin at words[at]."""
    words = command.words[max(at - 1, 0) :]
    if isinstance(command, WordList):
        return proved(list_writer(words, spell, source.text), command, source)
    return proved(flags_writer(replace(command, words=words), spell), command, source)


def proved(write: Write, command: Command, source: Source) -> Write:
    """Return a writer without the additions that may reach another command, if this one holds text from elsewhere in
    the file. After an addition the file must read as the same commands, one of them with more words.
    """
    first, last = command.place.start, command.place.end
    if not command.nested and all(first <= word.place.start and word.place.end <= last for word in command.words):
        return write

    approved: dict[tuple[tuple[int, str], ...], bool] = {}

    def proven(name: str, value: Any) -> tuple[Edit, ...] | None:
        edits = write(name, value)
        if not edits or any(edit.start != edit.end for edit in edits):
            return edits
        # Any other plain word in its place has the same effect, and reading the whole script takes long.
        shape = tuple((edit.start, _PLAIN.sub("x", edit.replacement)) for edit in edits)
        if shape not in approved:
            approved[shape] = _only_longer(command, source, edits)
        return edits if approved[shape] else None

    return proven


def _only_longer(command: Command, source: Source, edits: tuple[Edit, ...]) -> bool:
    """Return whether the edited file has one command with more words at its end, and all others as before."""
    written = (word.value for word in command.words if isinstance(word.value, str) and word.value in source.text)
    mark = max(written, key=len, default="")
    today = command_lines(source, mark)
    if len(today) > MOST_PROVED:
        return False
    edited = source.with_text(apply(source.text, edits))
    before, after = (list(map(_spelt, commands)) for commands in (today, command_lines(edited, mark)))
    changed = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    return len(before) == len(after) and len(changed) == 1 and changed[0][1][: len(changed[0][0])] == changed[0][0]


def _spelt(command: Command) -> list[str]:
    """Return the words to compare; "" for a text with blanks, which may be a script whose own commands are compared."""
    words = (word.value if isinstance(word.value, str) else word.text for word in command.words)
    return [word if not re.search(r"\s", word) else "" for word in words]


def untold(command: Command, at: int) -> tuple[str, ...]:
    """Return what a command leaves open, in sentences: words that may hold further options (`"$@"`, `${ARGS[@]}`), and
    the variables that were taken at their defaults.
    """
    open_words = []
    for flag in flags(command.words, at):
        first = () if flag.value is None else (flag.value,)
        alone = [word for word in first if not flag.name or re.search(r"\$\{?[@*]", word.text)]
        open_words += [word.text for word in (*alone, *flag.more) if isinstance(word.value, Unknown)]
    return (*(further_words(text, "options") for text in dict.fromkeys(open_words)), *command.assumed)


def command_lines(source: Source, *marks: str) -> tuple[Command, ...]:
    """Return every command of the file that may hold one of `marks`; nothing if the text has none of them.

    Places point into the file, also for a command inside a YAML value.
    """
    if not any(mark in source.text for mark in marks):
        return ()
    try:
        if source.suffix in _YAML:
            index = LineIndex(source.text, source.path)
            return tuple(command for root in source.plain_yaml for command in _inside(source, index, root, marks))
        return source.commands
    except (ValueError, RecursionError):  # kept in source.refusals
        return ()


def _inside(source: Source, index: LineIndex, node: Node, marks: tuple[str, ...]) -> Iterator[Command]:
    if isinstance(node.value, str):
        if any(mark in node.value for mark in marks):
            try:
                yield from scalar_commands(node, index)
            except ValueError as error:
                source.refuse(node.place.start, error)
        return
    parts = node.elements()
    if any(isinstance(part.value, str) and _is_word(part.value, marks) for part in parts):
        yield WordList(parts, {}, node.place, text=source.text)
        return
    for part in parts:
        yield from _inside(source, index, part, marks)
    for child in dict(node.items()).values():
        yield from _inside(source, index, child, marks)


def _is_word(text: str, marks: tuple[str, ...]) -> bool:
    """Return whether a list element is one word of a command that has a mark, and not a whole script."""
    return not re.search(r"\s", text.strip()) and any(mark.strip() in text for mark in marks)
