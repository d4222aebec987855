"""Variables of a shell script as far as the script tells them, and the expansion of its words.

A value is a list of fields; a field is pieces of text that remember where they stand, some of them unknown. So a flag
that comes out of an array or a string is found, and edited, where it is written.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_alternatives import after_block
from rlaudit.configs.syntax.shell_arithmetic import counted
from rlaudit.configs.syntax.shell_fields import (
    Field,
    Piece,
    from_caller,
    split,
    texts,
    unknown_at,
    unset,
    where_written,
)
from rlaudit.configs.syntax.shell_words import Lexer, Part, Token
from rlaudit.configs.syntax.unreadable import UnreadableText

LONGEST = 30_000
MOST_EXPANSIONS = 1_000
MOST_CHARACTERS = 400_000
COST_OF_A_WORD = 10
MOST_EXPORTS = 200
DEEPEST = 8
_WORKING_DIRECTORY = {"$(pwd)", "`pwd`"}
_TOO_OFTEN = f"a word with more than {MOST_EXPANSIONS} expansions is not evaluated"
# `$(cat <<'END' ... END)` is how a script keeps another one in a variable: nothing in it is expanded, unless END stands
# without quotes.
_KEPT_SCRIPT = re.compile(
    r"\$\(\s*cat\s+<<\s*(['\"]?)(\w+)\1[ \t]*\n(.*?)\n?^\2[ \t]*\n\s*\)", re.DOTALL | re.MULTILINE
)
_BRACED = re.compile(r"\$\{([A-Za-z_]\w*|[0-9@*])(\[[@*0-9]+\])?(?:(:?[-=+?])(.*))?\}", re.DOTALL)


def _expands_too_often(parts: Sequence[Part]) -> bool:
    return len(parts) > MOST_EXPANSIONS and sum(part.expansion for part in parts) > MOST_EXPANSIONS


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
    by_script: list[set[str]] = field(default_factory=list)
    spent: int = 0
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
        if sum(len(one.text) + COST_OF_A_WORD for one in fields) > LONGEST:
            fields = [Field.unknown(f"{name} is longer than {LONGEST} characters", fields[0].start)]
        self._remember(name)
        if self.by_script and (append or array or not from_caller(fields)):
            self.by_script[-1].add(name)
        self.known[name] = fields
        self.rests_on[name] = {**self.rests_on.get(name, {}), **self.assumed} if append else dict(self.assumed)
        (self.arrays.add if array else self.arrays.discard)(name)
        if name in self.exports:
            self.snapshot = None

    def unset(self, name: str) -> None:
        """Forget one."""
        self._remember(name)
        if self.by_script:
            self.by_script[-1].add(name)
        self.known.pop(name, None)
        self.exports.discard(name)
        self.snapshot = None

    def export(self, name: str) -> None:
        """Hand it to the commands that follow."""
        self.exports.add(name)
        self.snapshot = None

    def shift(self) -> None:
        """Drop the first positional parameter."""
        if self.known.get("@"):
            self.set("@", self.known["@"][1:], array=True)

    def _remember(self, name: str) -> None:
        if self.undo and name not in self.undo[-1]:
            self.undo[-1][name] = self.known.get(name)

    def enter(self) -> None:
        """Begin a block whose changes may not happen."""
        self.undo.append({})
        self.offered.append({})
        self.by_script.append(set())

    def other_branch(self) -> None:
        """Go back to the values before the block, and keep in mind what the last branch made of them."""
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

    def leave(self, line: int | None, called: bool = False) -> None:
        """End a block: what it changed is uncertain, except what was there before and only got longer. What it set to
        arguments of the script alone is at its value before the block, its default.

        line: of the block; None for one that certainly runs. called: whether its arguments are a function's.
        """
        changed, by_script, offered = self.undo.pop(), self.by_script.pop(), self.offered.pop()
        if self.by_script:
            self.by_script[-1] |= by_script
        for name, old in changed.items():
            if self.undo and name not in self.undo[-1]:
                self.undo[-1][name] = old
            if line is None:
                continue
            if not called and name not in by_script and old is not None and self._takes_default(name, old):
                continue
            new = self.known.get(name)
            left = [*offered.get(name, ()), *([new] if new is not None and new is not old else [])]
            if left and all(old is not None and texts(value) == texts(old) for value in left):
                self.known[name] = left[-1]
                continue
            self.known[name] = after_block(name, old, left, name in self.arrays, line)
            if name in self.exports:
                self.snapshot = None

    def _takes_default(self, name: str, old: list[Field]) -> bool:
        """Keep a value that only the script's caller may replace, and say so; not one that is empty or unknown."""
        default = texts(old)
        if not default.strip() or any(one.why for one in old):
            return False
        self._restore(name, old)
        self.rests_on[name] = {name: default}
        return True

    def forget(self) -> None:
        """End a subshell: nothing it set is there after it."""
        self.by_script.pop()
        self.offered.pop()
        for name, old in self.undo.pop().items():
            self._restore(name, old)

    def environment(self, index: LineIndex) -> Mapping[str, Node]:
        """Exported variables as nodes."""
        if self.snapshot is None:
            if len(self.exports) > MOST_EXPORTS:
                raise UnreadableText(f"more than {MOST_EXPORTS} exported variables")
            self.snapshot = {
                name: self.known[name][0].node(index) for name in sorted(self.exports) if self.known.get(name)
            }
        return self.snapshot

    def value(self, token: Token, begun: int) -> Field:
        """The value of `NAME=value`, whose value begins at `begun`; not split."""
        parts = []
        for part in token.parts:
            if part.start + len(part.text) > begun or part.start >= begun:
                skip = max(0, begun - part.start)
                parts.append(Part(part.text[skip:], part.start + skip, part.quoted, part.expansion))
        if _expands_too_often(parts):
            return Field.unknown(_TOO_OFTEN, begun)
        pieces = [piece for part in parts for piece in self._joined(part, 0)]
        return Field(tuple(pieces), begun, token.end, "".join(part.text for part in parts))

    def document(self, token: Token) -> Field:
        """The body of a here-document."""
        if _expands_too_often(token.parts):
            return Field.unknown(_TOO_OFTEN, token.start)
        pieces = [piece for part in token.parts for piece in self._joined(part, 0)]
        return Field(tuple(pieces), token.start, token.end, "")

    def _joined(self, part: Part, depth: int) -> list[Piece]:
        if not part.expansion:
            return [Piece(part.text, part.start)]
        fields = self._expansion(part, depth)
        pieces: list[Piece] = []
        for at, one in enumerate(fields):
            pieces += [Piece(" ", part.start)] * bool(at)
            pieces += [
                Piece(piece.text or part.text, part.start, piece.why) if piece.why else piece for piece in one.pieces
            ]
        return pieces

    def expand(self, token: Token, text: str) -> list[Field]:
        """The words that one word of the script becomes."""
        raw = text[token.start : token.end]
        if _expands_too_often(token.parts):
            return [Field((Piece(raw, token.start, _TOO_OFTEN),), token.start, token.end, raw)]
        whole = len(token.parts) == 1 and token.parts[0].expansion
        fields: list[list[Piece]] = [[]]
        spans: list[Field | None] = [None]
        present = [False]
        for part in token.parts:
            if not part.expansion:
                fields[-1].append(Piece(part.text, part.start))
                present[-1] = True
                continue
            self._spend(len(part.text))
            for at, one in enumerate(self._expansion(part, 0)):
                if at:
                    fields.append([])
                    spans.append(None)
                    present.append(False)
                words = [list(one.pieces)] if part.quoted else split(one.pieces)
                for number, pieces in enumerate(words):
                    if number:
                        fields.append([])
                        spans.append(None)
                        present.append(False)
                    fields[-1] += pieces
                    present[-1] = present[-1] or part.quoted or bool(pieces)
                    spans[-1] = one if whole and len(words) == 1 else None
                self._spend(sum(len(piece.text) for piece in one.pieces), len(words))
        made = []
        for pieces, span, there in zip(fields, spans, present, strict=True):
            if not there:
                continue
            one = Field(tuple(pieces), token.start, token.end, raw)
            of_list = len(fields) > 1 or one.text.startswith("-") or token.parts[0].text.endswith(("[@]}", "[*]}"))
            moved = whole and of_list and bool(one.text or not one.why)
            if moved and pieces:
                one = where_written(pieces, span)
            made.append(one)
        return made

    def _spend(self, characters: int, words: int = 1) -> None:
        self.spent += characters + COST_OF_A_WORD * words
        if self.spent > MOST_CHARACTERS:
            raise UnreadableText(f"its variables expand to more than {MOST_CHARACTERS} characters")

    def _expansion(self, part: Part, depth: int) -> list[Field]:  # noqa: PLR0911, PLR0912 - one for each kind of expansion
        """The fields of `$NAME` or `${...}`."""
        text = part.text
        if text.startswith("<") and text.endswith(">"):
            return [unknown_at(part, f"{text} is left to fill in")]
        if text.startswith(("$(", "`", "((", "<(", ">(")):
            kept = _KEPT_SCRIPT.fullmatch(text)
            if kept is not None:
                body = self._kept(kept, part.start, depth)
                return [Field(body, part.start, part.start + len(text), text)]
            if text.startswith("$((") and text.endswith("))"):
                number, names = counted(part, lambda name: self._lookup(name, ""))
                for name in sorted(names):
                    self.assumed.update(self.rests_on.get(name, {}))
                return [number]
            if text in _WORKING_DIRECTORY:
                return self._started_in(part)
            return [unknown_at(part, "it is arithmetic" if text.startswith("((") else "it is the output of a command")]
        match = _BRACED.fullmatch(text)
        if text.startswith("${") and match is None:
            return [unknown_at(part, f"{text[:40]} is not evaluated")]
        name, element, operator, other = match.groups(default="") if match else (text[1:], "", "", "")
        found = self._lookup(name, element)
        empty = found is None or (operator.startswith(":") and not texts(found).strip())
        if operator and operator[-1] == "+":
            if found is not None and any(one.why for one in found):
                return [unknown_at(part, f"whether {name} is set is not known")]
            return [] if empty else self._default(other, part, depth)
        if found is not None and not (empty and operator):
            self.assumed.update(self.rests_on.get(name, {}))
            return found
        if operator and operator[-1] in "-=":
            fields = self._default(other, part, depth)
            if found is None:
                self.assumed[name] = texts(fields)
            if operator[-1] == "=":
                self.set(name, fields)
            return fields
        return self._started_in(part) if name == "PWD" else [unknown_at(part, unset(name))]

    def _started_in(self, part: Part) -> list[Field]:
        """The folder in which the script is started."""
        self.assumed["PWD"] = "."
        return [Field((Piece(".", part.start),), part.start, part.start + len(part.text), part.text)]

    def _kept(self, script: re.Match[str], start: int, depth: int) -> tuple[Piece, ...]:
        """The body of a here-document in a command substitution that stands at `start`."""
        begun, end = script.span(3)
        if script.group(1) or depth >= DEEPEST:
            return (Piece(script.group(3), start + begun),)
        parts = Lexer(script.string).body_parts(begun, end)
        if _expands_too_often(parts):
            return (Piece("", start + begun, _TOO_OFTEN),)
        moved = [Part(one.text, one.start + start, one.quoted, one.expansion) for one in parts]
        return tuple(piece for one in moved for piece in self._joined(one, depth + 1))

    def _lookup(self, name: str, element: str) -> list[Field] | None:
        if name.isdigit() and name != "0" and len(name) < 5 and "@" in self.known:
            values = self.known["@"]
            return [values[int(name) - 1]] if int(name) <= len(values) else None
        found = self.known.get("@" if name == "*" else name)
        if found is None or element in {"[@]", "[*]"}:
            return found
        if element:
            at = int(element[1:-1]) if len(element) < 8 else len(found)
            return [found[at]] if at < len(found) else None
        return found[:1] if name in self.arrays and name not in "@*" else found

    def _default(self, text: str, part: Part, depth: int) -> list[Field]:
        """The fields of the word in `${NAME:-word}`."""
        begun = part.start + part.text.rindex(text, 0, len(part.text) - 1) if text else part.start
        if depth >= DEEPEST:
            return [unknown_at(part, "defaults are nested too deeply")]
        lexer = Lexer(" " * 0 + text)
        parts: list[Part] = []
        try:
            if part.quoted and '"' not in text and "'" not in text:
                lexer.text = text + '"'
                lexer.double(parts, 0)
            else:
                while lexer.at < len(text):
                    if text[lexer.at] in " \t\n;|&()<>":
                        parts.append(Part(text[lexer.at], lexer.at, False))
                        lexer.at += 1
                        continue
                    one = lexer.part(parts)
                    parts += [one] if one is not None else []
        except UnreadableText:
            return [unknown_at(part, "its default is not a complete word")]
        pieces = [
            piece
            for one in parts
            for piece in self._joined(Part(one.text, one.start + begun, one.quoted, one.expansion), depth + 1)
        ]
        return [Field(tuple(pieces), begun, begun + len(text), text)]
