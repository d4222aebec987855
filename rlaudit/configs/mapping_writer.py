"""Write functions for the places where a framework's file takes an engine argument: a mapping or a command line.

The code that makes edits is imported when the first edit is requested: most runs only report.
"""

import json
from typing import TYPE_CHECKING, Any

from rlaudit.configs.draft import unwritten
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.spelling import Spell, Write, scalar_text
from rlaudit.settings.place import Edit

if TYPE_CHECKING:
    from rlaudit.configs.syntax.shell_command import Command


def plain_spelling(name: str, value: Any) -> tuple[str, str] | None:
    """Spell an argument by vLLM's own name, and its value as YAML and JSON both read it."""
    return (name, scalar_text(value)) if isinstance(value, bool | int | float | str) else None


def one_mapping(mapping: Node | None, spell: Spell, text: str) -> Write:
    """Return a function that writes keys of a mapping; it writes nothing if the file does not have the mapping."""
    if mapping is None or not isinstance(mapping.value, dict):
        return unwritten

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        if mapping.place.path.endswith(".py"):
            from rlaudit.configs.syntax.call_edits import python_mapping_writer

            return python_mapping_writer(mapping, lambda *argument: _in_python(spell(*argument)), text)(name, value)
        from rlaudit.configs.syntax.yaml_edits import yaml_writer

        return yaml_writer(mapping, spell, text)(name, value)

    return write


def _in_python(spelling: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return a key, and its YAML value as Python spells it."""
    from rlaudit.configs.syntax.flags import typed

    if spelling is None:
        return None
    value = typed(spelling[1])
    return spelling[0], json.dumps(value) if isinstance(value, str) else repr(value)


def dotlist_writer(command: "Command", spell: Spell, source: Source) -> Write:
    """Return a function that writes Hydra overrides. spell: (key, with `+` if needed, value) of an argument."""

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        from rlaudit.configs.command_lines import line_writer
        from rlaudit.configs.syntax.flags import overrides

        spelling = spell(name, value)
        if spelling is None:
            return None
        key, new_text = spelling
        flags = (flag for flag in overrides(command.words) if flag.name == key.lstrip("+"))
        values = [flag.value for flag in flags if flag.value is not None]
        if not values:
            return line_writer(command, 0, lambda _name, _value: (f"{key}={new_text}", ""), source)(name, value)
        place = values[-1].place
        old = source.text[place.start : place.end]
        if "=" in old or "$" in old:
            return None
        return () if old == new_text else (Edit(place.path, place.start, place.end, new_text),)

    return write


def prefixed(prefix: str) -> Spell:
    """Return the spelling of overrides whose keys are a prefix and vLLM's name."""

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        spelling = plain_spelling(name, value)
        return None if spelling is None else (f"{prefix}{name}", spelling[1])

    return spell
