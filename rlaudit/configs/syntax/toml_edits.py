"""Edits of TOML tables: a value in place, or a new key after the last one. An edit that is no TOML is not offered."""

import re
from typing import Any

from rlaudit.configs.engine_names import affirmed, canonical
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.spelling import Spell, Write, apply, line_end, newline
from rlaudit.settings.place import Edit


def toml_writer(table: Node, spell: Spell, text: str) -> Write:
    """Return a function that writes keys of a TOML table. spell: (key, value as TOML)."""
    return lambda name, value: _checked_toml(_toml_edits(table, spell, text, name, value), text)


def _toml_edits(table: Node, spell: Spell, text: str, name: str, value: Any) -> tuple[Edit, ...] | None:  # noqa: PLR0911 - one for each kind of table
    spelling = spell(name, value)
    if spelling is None or not isinstance(table.value, dict):
        return None
    key, new_text = spelling
    path = table.place.path
    existing = [node for other, node in table.items() if affirmed(canonical(other))[0] == affirmed(canonical(key))[0]]
    if existing:
        old = existing[-1]
        edits = []
        if old.key is not None and text[old.key.start : old.key.end].strip("\"'") != key:
            edits.append(Edit(path, old.key.start, old.key.end, key))
        if text[old.place.start : old.place.end] != new_text:
            edits.append(Edit(path, old.place.start, old.place.end, new_text))
        return tuple(edits)
    inline = text[table.place.start : table.place.start + 1] == "{"
    scalars = [node for node in table.value.values() if node.key is not None and not _is_table(node, text)]
    if inline:
        ends = [node.place.end for node in table.value.values()]
        at = max(ends) if ends else table.place.start + 1
        return (Edit(path, at, at, f"{', ' if ends else ' '}{key} = {new_text}{'' if ends else ' '}"),)
    if scalars:
        last = max(scalars, key=lambda node: node.place.end)
        line = text.rfind("\n", 0, last.key.start if last.key else 0) + 1
        indent = (re.compile(r"[ \t]*").match(text, line) or [""])[0]
        at = line_end(text, last.place.end)
        return (Edit(path, at, at, f"{newline(text)}{indent}{key} = {new_text}"),)
    if table.place.end > table.place.start and text[table.place.start] == "[":
        at = line_end(text, table.place.end)
        return (Edit(path, at, at, f"{newline(text)}{key} = {new_text}"),)
    if table.place.start == 0:
        return (Edit(path, 0, 0, f"{key} = {new_text}{newline(text)}"),)
    return None


def _is_table(node: Node, text: str) -> bool:
    """Return whether a node is a table with a header, and no value written after an equals sign."""
    begins = text[node.place.start : node.place.start + 1]
    if isinstance(node.value, dict):
        return begins != "{"
    return (
        bool(node.elements()) and text.startswith("[[", node.place.start) and isinstance(node.elements()[0].value, dict)
    )


def _checked_toml(edits: tuple[Edit, ...] | None, text: str) -> tuple[Edit, ...] | None:
    if not edits:
        return edits
    import tomllib

    try:
        tomllib.loads(apply(text, edits))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return None
    return edits
