"""Where a fix goes: the edits that set an argument of vLLM in a framework's own spelling.

write:
  fields: "@"                     # an argument with a plain `key:` is written there, under that key; of several under
                                  # the one that is written, else the first; per layout if a mapping
  others: "@engine_init_kwargs"   # any other one, under vLLM's name; nothing without it. As an option of a
                                  # command or a keyword of a call it is not written
  plus: "+"                       # in front of an override's key that Hydra does not know; per layout if a mapping
  only: [enforce_eager, ...]      # further keys that may be written are none
  given once: CONDITION           # if it may hold, what the framework's code gives the engine is not written again
  hook: F.NAME                    # a function (reading) -> writer, in place of all this; it may use `writer`
"""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlaudit.configs.dialects.clause import clauses
from rlaudit.configs.dialects.elsewhere import entry_of
from rlaudit.configs.dialects.settling import applies
from rlaudit.configs.draft import is_said, unwritten
from rlaudit.configs.mapping_writer import dotlist_writer, one_mapping, plain_spelling
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.spelling import Write
from rlaudit.settings.place import Edit

if TYPE_CHECKING:
    from rlaudit.configs.dialects.reading import Reading


def writer_of(reading: "Reading") -> Write:
    """Return the writer that makes the edits of one config."""
    entry = reading.spec.declared.get("write")
    if entry is None or entry_of(reading, "engine")[0] is not None:
        return unwritten
    if "hook" in entry:
        write: Write = reading.spec.hook(entry["hook"])(reading)
        return write
    return writer(reading, entry)


def writer(reading: "Reading", entry: Mapping[str, Any]) -> Write:
    """Return the writer that an entry describes."""
    homes = _Homes(reading, entry)
    command, call = reading.tree.command, reading.tree.python_call
    if call is not None:
        from rlaudit.configs.syntax.call_edits import call_writer

        return call_writer(call, homes.in_python, reading.source.text)
    if command is not None and reading.tree.options_at:
        from rlaudit.configs.command_lines import line_writer

        return line_writer(command, reading.tree.options_at, homes.as_option, reading.source)
    if command is not None:
        return dotlist_writer(command, homes.as_override, reading.source)
    return homes.write


class _Homes:
    """The places of a config at which arguments are written."""

    def __init__(self, reading: "Reading", entry: Mapping[str, Any]) -> None:
        self._reading, self._entry = reading, entry

    @cached_property
    def _keys(self) -> Mapping[str, str]:
        """The keys of the arguments that have one. Most reports need none."""
        root = self._of_the_layout("fields")
        return {} if root is None else _plain_keys(self._reading, root)

    @cached_property
    def _spelt(self) -> frozenset[str]:
        """Options of a command that take yes or no; other booleans are switches."""
        engine = self._reading.spec.declared["engine"].values()
        return frozenset(clause["key"] for entry in engine for clause in clauses(entry) if clause.get("truth"))

    def _home(self, name: str, value: Any) -> tuple[str, str, Any] | None:
        """Return the path of the mapping, the key in it and its value; None if an argument cannot be written.

        None also if the copy of the framework around the config has no such field: it would stop there.
        """
        entry = self._entry
        if "only" in entry and name not in entry["only"]:
            return None
        if name in self._keys:
            key, is_read = self._keys[name], self._reading.code.names(self._keys[name])
            return (self._reading.from_the_root(str(self._of_the_layout("fields"))), key, value) if is_read else None
        once = "given once" in entry and self._reading.holds(entry["given once"]) is not False
        # An option of a command and a keyword of a call are no entries of a mapping.
        is_flat = self._reading.tree.options_at or self._reading.tree.python_call is not None
        if entry.get("others") is None or is_flat or (once and self._is_given(name)):
            return None
        return self._reading.from_the_root(entry["others"]), name, value

    def _is_given(self, name: str) -> bool:
        """Return whether the framework's code may give the engine an argument by itself."""
        given = clauses(self._reading.spec.declared["engine"].get(name, []))
        return any("nothing" not in clause and self._reading.holds(clause.get("if")) is not False for clause in given)

    def _of_the_layout(self, name: str) -> str | None:
        entry: Any = self._entry.get(name)
        return entry.get(self._reading.layout.name) if isinstance(entry, dict) else entry

    def write(self, name: str, value: Any) -> tuple[Edit, ...] | None:
        """Write into a mapping of a YAML, TOML or Python file."""
        home = self._home(name, value)
        if home is None:
            return None
        path, key, value = home
        path, _, key = f"{path}.{key}".strip(".").rpartition(".")
        root = self._reading.tree.own
        mapping: Node | None = root.get(*path.split(".")) if path else root
        text = self._reading.source.text
        if self._reading.source.suffix == ".toml" and mapping is not None:
            from rlaudit.configs.syntax.toml_edits import toml_writer

            return toml_writer(mapping, lambda _name, given: _in_toml(key, given), text)(name, value)
        return one_mapping(mapping, lambda _name, given: plain_spelling(key, given), text)(name, value)

    def as_override(self, name: str, value: Any) -> tuple[str, str] | None:
        """Spell an override of Hydra's."""
        home = self._home(name, value)
        spelt = plain_spelling(name, home[2]) if home is not None else None
        if home is None or spelt is None:
            return None
        return f"{self._of_the_layout('plus') or ''}{'.'.join(part for part in home[:2] if part)}", spelt[1]

    def as_option(self, name: str, value: Any) -> tuple[str, str] | None:
        """Spell an option of a command line. A switch can be added, not denied."""
        home = self._home(name, value)
        if home is None or isinstance(home[2], dict | list):
            return None
        _, key, written = home
        option = f"--{key}"
        if isinstance(written, bool) and key not in self._spelt:
            return (option, "") if written else None
        return option, str(written).lower() if isinstance(written, bool) else str(written)

    def in_python(self, name: str, value: Any) -> tuple[str, str] | None:
        """Spell a keyword of a call."""
        home = self._home(name, value)
        if home is None or not isinstance(home[2], bool | int | float | str):
            return None
        _, key, written = home
        return key, json.dumps(written) if isinstance(written, str) else repr(written)


def _in_toml(key: str, value: Any) -> tuple[str, str] | None:
    if isinstance(value, bool):
        return key, str(value).lower()
    if isinstance(value, int | float):
        return key, str(value)
    return (key, json.dumps(value)) if isinstance(value, str) else None


def _plain_keys(reading: "Reading", root: str) -> dict[str, str]:
    """Return the arguments that have a key of their own, with that key as this layout spells it."""
    prefix = "@" if root == "@" else f"{root}."
    keys: dict[str, str] = {}
    for name, entry in reading.spec.declared.get("engine", {}).items():
        for clause in clauses(entry):
            truth = applies(reading, clause)
            if truth is False:
                continue
            paths = [path.strip() for path in clause.get("key", "").split("|")]
            path = next((path for path in paths if is_said(reading.node(path))), paths[0])
            changed = {"value", "map", "above", "open", "lost", "hook"}.intersection(clause)
            plain = path.startswith(prefix) or (not root and path)
            if truth is not True:
                break
            if plain and not changed:
                key = path.removeprefix(prefix) if root else path
                keys.setdefault(name, reading.layout.renames.get(key, key))
    return keys
