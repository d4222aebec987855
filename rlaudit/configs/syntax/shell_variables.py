"""The variables of a shell script at one point of it: values, exports, and the defaults that a value rests on.

A value is a list of fields; a field is pieces of text that keep their place in the file, some of them unknown. So a
flag of an array or a string is edited where it is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_alternatives import after_block
from rlaudit.configs.syntax.shell_parts import Field, Piece, texts
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.unknown import Unknown

LONGEST = 30_000
COST_OF_A_WORD = 10
MOST_EXPORTS = 200


@dataclass
class Variables:
    """What is known of every variable at one point of the script."""

    known: dict[str, list[Field]] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    exports: set[str] = field(default_factory=set)
    assumed: dict[str, str] = field(default_factory=dict)
    rests_on: dict[str, dict[str, str]] = field(default_factory=dict)
    undo: list[dict[str, list[Field] | None]] = field(default_factory=list)
    offered: list[dict[str, list[list[Field]]]] = field(default_factory=list)
    snapshot: dict[str, Node] | None = None

    def set(self, name: str, fields: list[Field], array: bool = False, append: bool = False) -> None:
        """Assign; a scalar that is appended to keeps one field."""
        old = self.known.get(name)
        if append and old is not None:
            if array or name in self.arrays:
                fields = [*old, *fields]
            else:
                pieces = (*old[0].pieces, *fields[0].pieces) if old else fields[0].pieces
                fields = [Field(pieces, fields[0].start, fields[0].end, fields[0].raw)]
        if sum(len(expanded.text) + COST_OF_A_WORD for expanded in fields) > LONGEST:
            fields = [Field.unknown(f"{name} is longer than {LONGEST} characters", fields[0].start)]
        self._remember(name)
        self.known[name] = fields
        self.rests_on[name] = {**self.rests_on.get(name, {}), **self.assumed} if append else dict(self.assumed)
        (self.arrays.add if array else self.arrays.discard)(name)
        if name in self.exports:
            self.snapshot = None

    def unset(self, name: str) -> None:
        """Remove a variable."""
        self._remember(name)
        self.known.pop(name, None)
        self.exports.discard(name)
        self.snapshot = None

    def export(self, name: str) -> None:
        """Make a variable visible to the commands that follow."""
        self.exports.add(name)
        self.snapshot = None

    def _remember(self, name: str) -> None:
        if self.undo and name not in self.undo[-1]:
            self.undo[-1][name] = self.known.get(name)

    def enter(self) -> None:
        """Begin a block whose changes may not happen."""
        self.undo.append({})
        self.offered.append({})

    def other_branch(self) -> None:
        """Go back to the values before the block, and keep those after the last branch as alternatives."""
        if self.undo:
            for name, old in self.undo[-1].items():
                new = self.known.get(name)
                if new is not None and new is not old:
                    self.offered[-1].setdefault(name, []).append(new)
                self._restore(name, old)

    def _restore(self, name: str, old: list[Field] | None) -> None:
        if old is None:
            self.known.pop(name, None)
        else:
            self.known[name] = old
        if name in self.exports:
            self.snapshot = None

    def leave(self, line: int | None) -> None:
        """End a block: what it changed is uncertain, except the beginning of a value that only got longer.

        line: of the block; None for one that certainly runs.
        """
        changed, offered = self.undo.pop(), self.offered.pop()
        for name, old in changed.items():
            if self.undo and name not in self.undo[-1]:
                self.undo[-1][name] = old
            if line is None:
                continue
            new = self.known.get(name)
            values_after = [*offered.get(name, ()), *([new] if new is not None and new is not old else [])]
            if values_after and all(old is not None and texts(value) == texts(old) for value in values_after):
                self.known[name] = values_after[-1]
                continue
            self.known[name] = after_block(name, old, values_after, name in self.arrays, line)
            if name in self.exports:
                self.snapshot = None

    def forget(self) -> None:
        """End a subshell: undo what it set."""
        self.offered.pop()
        for name, old in self.undo.pop().items():
            self._restore(name, old)

    def environment(self, index: LineIndex) -> Mapping[str, Node]:
        """Return the exported variables as nodes."""
        if self.snapshot is None:
            if len(self.exports) > MOST_EXPORTS:
                raise UnreadableText(f"more than {MOST_EXPORTS} exported variables")
            self.snapshot = {
                name: self.known[name][0].node(index) for name in sorted(self.exports) if self.known.get(name)
            }
        return self.snapshot

    def look_up(self, name: str, element: str = "") -> list[Field] | None:
        """Return the fields of a variable, or of an element of it (`[@]`, `[0]`); None if it is not set."""
        fields = self.known.get(name)
        if fields is None or element in {"[@]", "[*]"}:
            return fields
        if element:
            at = int(element[1:-1]) if len(element) < 8 else len(fields)
            return [fields[at]] if at < len(fields) else None
        return fields[:1] if name in self.arrays else fields

    def handed_over(self, given: Mapping[str, Node], everything: bool) -> "Variables":
        """Return the variables that a script inside a command sees. given: variables of the command alone. everything:
        whether the same shell reads it, which also sees those that are not exported.
        """
        visible = {name: value for name, value in self.known.items() if everything or name in self.exports}
        inside = Variables(visible, self.arrays & set(visible) if everything else set(), set(self.exports))
        for name, node in given.items():
            reason = node.value.reason if isinstance(node.value, Unknown) else ""
            value = Piece("" if reason else str(node.value), node.place.start, reason)
            inside.set(name, [Field((value,), node.place.start, node.place.end, node.text)])
            inside.export(name)
        return inside
