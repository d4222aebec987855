"""Edits of commands: a flag in place, a new one after the last word, or none, in shell text or in a list of words."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rlaudit.configs.engine_names import affirmed, canonical
from rlaudit.configs.syntax.flags import Flag, flags
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.configs.syntax.spelling import Spell, Write, is_word, line_end, newline
from rlaudit.settings.place import Edit, Place

# Whether a flag, by its name, takes no value; None if that is not known, and the next word may be its value or not.
Switch = Callable[[str], "bool | None"]
_SAFE_WORD = re.compile(r"[\w.,:/+@%=-]+")
_WORD_ENDS = re.compile(r"[\s'\"\\;|&<>()]|$")


def _switch_unknown(_name: str) -> None:
    """Return None: it is unknown whether a flag takes a value."""


def flags_writer(command: Command, spell: Spell, switch: Switch = _switch_unknown) -> Write:
    """Return a function that writes flags of a shell command. spell: (flag with its dashes, value or "")."""
    return lambda name, value: _flag_edits(command, spell, switch, name, value)


def _flag_edits(command: Command, spell: Spell, switch: Switch, name: str, value: Any) -> tuple[Edit, ...] | None:
    if value is None:
        return _without_flags(command, name, switch)
    spelling = spell(name, value)
    if spelling is None or not command.words:
        return None
    flag_text, new_text = spelling
    new_text = shell_quoted(new_text)
    if not _SAFE_WORD.fullmatch(flag_text) or (command.nested and new_text and not _SAFE_WORD.fullmatch(new_text)):
        return None
    entry = f"{flag_text} {new_text}".rstrip()
    existing = [flag for flag in flags(command.words) if flag.name and _means(flag.place, flag_text)]
    return _replace_flag(command, existing[-1], entry, new_text) if existing else _append_flag(command, entry)


def _without_flags(command: Command, name: str, switch: Switch) -> tuple[Edit, ...] | None:
    """Take a flag away with its value, and with the blanks and the line end in front of it."""
    text, edits = command.text, []
    for flag in _spelling(command.words, name, switch):
        start, end = flag.place.start, _end(flag, switch)
        before = text[command.place.start : start]
        shortened = _without_gap(before)
        if end is None or shortened == before or not text[start:end].startswith("-"):
            return None
        edits.append(Edit(command.place.path, command.place.start + len(shortened), end, ""))
    return tuple(edits) or None


def _without_gap(text: str) -> str:
    """Return a text without the blanks and line ends at its end that separate words of one command.

    A line end within a command is continued, or is in a list or in folded YAML: left alone on its line, it would end
    the command. A pattern would try each blank of the text.
    """
    while True:
        shorter = text.rstrip()
        if shorter.endswith("\\") and text[len(shorter) :].startswith(("\n", "\r\n")):
            shorter = shorter[:-1]
        if shorter == text:
            return text
        text = shorter


def _spelling(words: Sequence[Node], name: str, switch: Switch) -> Iterator[Flag]:
    """Yield the flags of a command that spell an argument."""
    for flag in flags(words, 0, lambda option: switch(option) is True):
        if flag.name and canonical(flag.place.setting) == name:
            yield flag


def _end(flag: Flag, switch: Switch) -> int | None:
    """Return the end of a flag with its value; None if it is unknown whether the words after it belong to it."""
    if flag.value is None:
        return flag.place.end
    if flag.more or not (flag.joined or switch(flag.name) is False):
        return None
    return flag.value.place.end


def _replace_flag(command: Command, old: Flag, entry: str, new_text: str) -> tuple[Edit, ...] | None:
    """Give an existing flag another value, or a switch another spelling."""
    path, text, place = command.place.path, command.text, old.place
    if old.more or not text[place.start : place.end].startswith("-"):
        return None
    if old.value is not None and new_text:
        start, end = old.value.place.start, old.value.place.end
        return () if text[start:end] == new_text else (Edit(path, start, end, new_text),)
    if old.value is not None or new_text:
        return None
    return () if text[place.start : place.end] == entry else (Edit(path, place.start, place.end, entry),)


def _append_flag(command: Command, entry: str) -> tuple[Edit, ...] | None:
    """Add a flag after the last word, on its own line if the command has one flag per line.

    The last word counts as the script spells it: what it expands to may be the program itself. The end of a command
    inside a text is known only if its last word is at that place.
    """
    place, path, text = command.place, command.place.path, command.text
    end = command.words[-1].place.end if command.nested else place.end
    if end == len(text) and text.endswith("\\"):  # continues with nothing
        end = len(text[:-1].rstrip())
    if not place.start < end <= place.end or not _WORD_ENDS.match(text, end):
        return None
    continued = [] if command.nested else list(re.finditer(r"\\\r?\n([ \t]*)", text[place.start : end]))
    lead = f" \\{newline(text)}{continued[-1].group(1)}" if continued else " "
    return (Edit(path, end, end, lead + entry),)


def _means(place: Place, flag_text: str) -> bool:
    """Return whether a flag's spelling sets the same argument as another one, or its opposite."""
    return affirmed(canonical(place.setting))[0] == affirmed(canonical(flag_text))[0]


def shell_quoted(word: str) -> str:
    """Return a word for a shell; quoted only where it must be."""
    return word if not word or _SAFE_WORD.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def list_writer(words: Sequence[Node], spell: Spell, text: str, switch: Switch = _switch_unknown) -> Write:
    """Return a function that writes flags of a command in a list of YAML, JSON or Python, one word an element."""

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        return (
            _without_elements(words, name, text, switch)
            if value is None
            else _list_edits(words, spell, text, name, value)
        )

    return write


def _list_edits(words: Sequence[Node], spell: Spell, text: str, name: str, value: Any) -> tuple[Edit, ...] | None:  # noqa: PLR0911 - one for each way that a list is written
    spelling = spell(name, value)
    if spelling is None or not words:
        return None
    flag_text, new_text = spelling
    path = words[-1].place.path
    existing = [flag for flag in flags(words) if flag.name and _means(flag.place, flag_text)]
    if existing:
        old = existing[-1]
        if old.more or (old.value is None) != (not new_text):
            return None
        if old.value is None:
            return _element_edit(old.place, text, flag_text, path)
        return _element_edit(old.value.place, text, new_text, path, old.joined)
    last = words[-1].place
    element = text[last.start : last.end]
    new = [flag_text, new_text] if new_text else [flag_text]
    line = text.rfind("\n", 0, last.start)
    dash = re.fullmatch(r"([ \t]*)-([ \t]+)", text[line + 1 : last.start])
    if dash and "\n" not in element:
        at = line_end(text, last.end)
        lines = "".join(
            f"{newline(text)}{dash.group(1)}-{dash.group(2)}{_element(word, element, path)}" for word in new
        )
        return (Edit(path, at, at, lines),)
    if re.compile(r"\s*[,\]]").match(text, last.end):
        alone = text[line + 1 : last.start]
        separator = "," + newline(text) + alone if not alone.strip() and line >= 0 else ", "
        return (Edit(path, last.end, last.end, "".join(separator + _element(word, element, path) for word in new)),)
    return None


def _without_elements(words: Sequence[Node], name: str, text: str, switch: Switch) -> tuple[Edit, ...] | None:
    """Take a flag away with its value: their lines of a block list, else the elements with the comma in front."""
    edits = []
    for flag in _spelling(words, name, switch):
        start, end = flag.place.start, _end(flag, switch)
        line = text.rfind("\n", 0, start) + 1
        comma = re.search(r",\s*$", text[:start])
        if end is None:
            return None
        if re.fullmatch(r"[ \t]*-[ \t]+", text[line:start]) and not text[end : line_end(text, end)].strip():
            edits.append(Edit(flag.place.path, max(line - 1, 0), line_end(text, end), ""))
        elif comma is not None:
            edits.append(Edit(flag.place.path, comma.start(), end, ""))
        else:
            return None
    return tuple(edits) or None


def _element(word: str, model: str, path: str) -> str:
    """Return a list element quoted like its neighbour; in Python always, since its neighbour may be an expression."""
    if path.endswith(".py"):
        return json.dumps(word)
    if model[:1] == "'":
        return "'" + word.replace("'", "''") + "'"
    if model[:1] == '"' or not re.fullmatch(r"-{0,2}[A-Za-z][\w.,/=-]*", word) or is_word(word):
        return json.dumps(word)
    return word


def _element_edit(place: Place, text: str, new_text: str, path: str, joined: bool = False) -> tuple[Edit, ...] | None:
    old = text[place.start : place.end]
    element = new_text if joined and _SAFE_WORD.fullmatch(new_text) else _element(new_text, old, path)
    return () if old == element else (Edit(path, place.start, place.end, element),)
