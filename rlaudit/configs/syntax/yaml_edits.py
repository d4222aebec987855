"""Edits of YAML and JSON mappings: a value in place, or a new key after the last one.

An edit is tried out before it is offered: if the edited text does not read as before with just this key set, None is
returned. That happens for a mapping that is used in several places (anchors).
"""

import json
import re
from functools import lru_cache
from typing import Any

from rlaudit.configs.engine_names import affirmed, canonical
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.spelling import Spell, Write, apply, line_end, newline
from rlaudit.files.parse_json import parse_json
from rlaudit.settings.place import Edit


def yaml_writer(mapping: Node, spell: Spell, text: str) -> Write:
    """Return a function that writes keys of a YAML or JSON mapping. spell: (key, value as YAML) of an argument."""

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        spelling = spell(name, value)
        return _checked_yaml(_yaml_edits(mapping, spelling, text), mapping, text, spelling)

    return write


def _yaml_edits(mapping: Node, spelling: tuple[str, str] | None, text: str) -> tuple[Edit, ...] | None:
    if spelling is None or not isinstance(mapping.value, dict):
        return None
    key, new_text = spelling
    quoted = _quotes_keys(mapping, text)
    if quoted:
        new_text = new_text if _is_json(new_text) else json.dumps(new_text)
    key_text = json.dumps(key) if quoted else key
    old = _same_argument(mapping, key)
    path = mapping.place.path
    if old is None:
        return _insert_entry(mapping, text, f"{key_text}: {new_text}", path)
    edits = []
    if old.key is not None and text[old.key.start : old.key.end].strip("\"'") != key:
        edits.append(Edit(path, old.key.start, old.key.end, key_text))
    span = _value_span(old, text)
    if span is None:
        return None
    blank = " " if span[0] == span[1] and text[span[0] - 1 : span[0]] == ":" else ""
    if text[span[0] : span[1]] != new_text:
        edits.append(Edit(path, *span, blank + new_text))
    return tuple(edits)


def _same_argument(mapping: Node, key: str) -> Node | None:
    """Return the entry that sets the same argument, in any spelling, if it is written in this mapping itself."""
    argument = affirmed(canonical(key))[0]
    entry = None
    for other, node in mapping.items():
        inside = node.key is not None and mapping.place.start <= node.key.start < max(mapping.place.end, 1)
        if inside and affirmed(canonical(other))[0] == argument:
            entry = node
    return entry


def _value_span(node: Node, text: str) -> tuple[int, int] | None:
    """Return the span of an entry's value, or of the alias in its place."""
    if node.key is None:
        return None
    gap = text[node.key.end : node.place.start] if node.place.start >= node.key.end else None
    if gap is not None and re.fullmatch(r"[\"']?\s*:?\s*(?:[!&][^\s]+\s+)*", gap):
        return node.place.start, node.place.end
    alias = re.compile(r"[\"']?\s*:\s*(\*[^\s,\]}]+)").match(text, node.key.end)
    return (alias.start(1), alias.end(1)) if alias else None


def _quotes_keys(mapping: Node, text: str) -> bool:
    keys = [node.key for _, node in mapping.items() if node.key is not None]
    if keys:
        return all(text[key.start : key.start + 1] == '"' for key in keys)
    return text.lstrip()[:1] == "{" and '"' in text


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _insert_entry(mapping: Node, text: str, entry: str, path: str) -> tuple[Edit, ...] | None:
    """Add an entry after the last one."""
    place = mapping.place
    entries = [node for _, node in mapping.items() if node.key and place.start <= node.key.start < place.end]
    if text[place.start : place.start + 1] == "{":
        if not entries:
            return (Edit(path, place.start + 1, place.start + 1, entry),)
        last = max(entries, key=lambda node: node.key.start if node.key else 0)
        span = _value_span(last, text)
        if span is None:
            return None
        end = span[1]
        before = text[place.start : end]
        separator = ", "
        if "\n" in before and last.key is not None:
            line = text.rfind("\n", 0, last.key.start)
            indent = text[line + 1 : last.key.start]
            if indent.strip() == "":
                separator = "," + newline(text) + indent
        return (Edit(path, end, end, separator + entry),)
    if not entries:
        return None
    last = max(entries, key=lambda node: node.key.start if node.key else 0)
    first = min(entries, key=lambda node: node.key.start if node.key else 0)
    assert first.key is not None
    end = _block_end(last, text)
    at = line_end(text, end)
    return (Edit(path, at, at, newline(text) + " " * (first.key.column - 1) + entry),)


def _block_end(entry: Node, text: str) -> int:
    """Return where an entry of a block mapping ends, without comments after it."""
    span = _value_span(entry, text)
    if span is None or entry.key is None:
        return entry.key.end if entry.key is not None else entry.place.end
    is_alias = span != (entry.place.start, entry.place.end)
    return span[1] if is_alias else max(entry.key.end, _end(entry, text))


def _end(node: Node, text: str) -> int:
    """Return where a value ends: its last descendant's end for a block collection, whose end may cover comments."""
    if text[node.place.start : node.place.start + 1] in {"{", "["}:
        return node.place.end
    children = list(node.value.values()) if isinstance(node.value, dict) else list(node.elements())
    inside = [child for child in children if node.place.start <= child.place.start <= node.place.end]
    ends = [_block_end(child, text) if child.key else _end(child, text) for child in inside]
    return max(ends, default=node.place.end)


def _checked_yaml(
    edits: tuple[Edit, ...] | None, mapping: Node, text: str, spelling: tuple[str, str] | None
) -> tuple[Edit, ...] | None:
    """Return the edits, unless the edited text would not read as before with just this key set.

    That happens for a mapping that is used in several places (anchors), and for a text that YAML reads otherwise.
    """
    if not edits or spelling is None:
        return edits
    from rlaudit.configs.syntax.unreadable import UnreadableText
    from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

    key, new_text = spelling
    try:
        value = parse_plain_yaml(new_text, "")
        before = _parsed(text)
        after = parse_plain_yaml(apply(text, edits), "")
    except UnreadableText:
        return None
    plain = value[0].plain() if value else None
    hoped = [_with_key(root, mapping, key, plain) for root in before]
    return edits if repr(hoped) == repr([root.plain() for root in after]) else None


# Every fix that is offered for a file is tried out on the same text.
@lru_cache(maxsize=2)
def _parsed(text: str) -> tuple[Node, ...]:
    from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

    return parse_plain_yaml(text, "")


def _with_key(node: Node, mapping: Node, key: str, value: Any) -> Any:
    """Return a document as data, with one key of one mapping set."""
    if isinstance(node.value, tuple):
        return [_with_key(element, mapping, key, value) for element in node.value]
    if not isinstance(node.value, dict):
        return node.value
    whole = {name: _with_key(child, mapping, key, value) for name, child in node.value.items()}
    if node.place.start == mapping.place.start and node.place.end == mapping.place.end:
        old = _same_argument(node, key)
        names = [key if old is child else name for name, child in node.value.items()]
        whole = dict(zip(names, whole.values(), strict=True))
        whole[key] = value
    return whole
