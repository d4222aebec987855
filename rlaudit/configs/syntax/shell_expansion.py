"""Expand a word of a shell script into words: variables, arrays, defaults and arithmetic, as far as their values are
in the script.

Read in arithmetic: + - * / % and brackets, on whole numbers. Not read: the output of commands, the removal of
patterns, and comparisons, bits, powers and assignments in arithmetic; their words are Unknown.
Source: POSIX.1-2017, Shell Command Language 2.6; a division rounds towards zero.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.shell_parts import (
    DOUBLE,
    PLAIN,
    Field,
    Piece,
    Word,
    WordPart,
    parts_of,
    split,
    texts,
    where_written,
)
from rlaudit.configs.syntax.shell_tree import parsed
from rlaudit.configs.syntax.shell_variables import COST_OF_A_WORD, Variables
from rlaudit.configs.syntax.unreadable import UnreadableText

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

MOST_EXPANSIONS = 1_000
MOST_CHARACTERS = 400_000
DEEPEST = 8
DEEPEST_ARITHMETIC = 40
LARGEST = 10**15
_TOO_OFTEN = f"a word with more than {MOST_EXPANSIONS} expansions is not evaluated"
_WORKING_DIRECTORY = {"$(pwd)", "`pwd`"}
_BRACED = re.compile(r"\$\{([A-Za-z_]\w*|[0-9@*])(\[(?:[@*]|[0-9]+)\])?(?:(:?[-=+?])(.*))?\}", re.DOTALL)
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})")
_NAME = re.compile(r"\$?([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)\}")


@dataclass
class Expander:
    """Expands the words of one script with its variables."""

    text: str
    # The places of its characters in the file.
    index: LineIndex
    variables: Variables
    spent: int = 0

    def words(self, word: Word) -> list[Field]:
        """Return the words that a word of the script expands to."""
        parts = parts_of(self.text, word.trees, word.start, word.end, PLAIN)
        if _expands_too_often(parts):
            return [self._unknown(word.start, word.end, _TOO_OFTEN)]
        whole = len(parts) == 1 and parts[0].expands
        fields: list[list[Piece]] = [[]]
        spans: list[Field | None] = [None]
        present = [False]

        def begin() -> None:
            fields.append([])
            spans.append(None)
            present.append(False)

        for part in parts:
            if not part.expands:
                fields[-1] += self._pieces(part)
                present[-1] = True
                continue
            self._spend(len(part.text))
            for at, field in enumerate(self._expanded(part, 0)):
                if at:
                    begin()
                words = [list(field.pieces)] if part.quoted else split(field.pieces)
                for number, pieces in enumerate(words):
                    if number:
                        begin()
                    fields[-1] += pieces
                    present[-1] = present[-1] or part.quoted or bool(pieces)
                    spans[-1] = field if whole and len(words) == 1 else None
                self._spend(sum(len(piece.text) for piece in field.pieces), len(words))
        results = []
        for pieces, span, is_word in zip(fields, spans, present, strict=True):
            if not is_word:
                continue
            field = self._field(pieces, word.start, word.end)
            of_list = len(fields) > 1 or field.text.startswith("-") or parts[0].text.endswith(("[@]}", "[*]}"))
            moved = whole and of_list and bool(field.text or not field.why)
            results.append(where_written(pieces, span) if moved and pieces else field)
        return results

    def value(self, word: Word) -> Field:
        """Return the value of `NAME=value`, not split."""
        parts = parts_of(self.text, word.trees, word.start, word.end, PLAIN)
        if _expands_too_often(parts):
            return self._unknown(word.start, word.start, _TOO_OFTEN)
        return self._field(self._joined(parts, 0), word.start, word.end)

    def _field(self, pieces: Sequence[Piece], start: int, end: int) -> Field:
        place = self.index.place(start, end, "")
        return Field(tuple(pieces), place.start, place.end, self.text[start:end])

    def _unknown(self, start: int, end: int, why: str) -> Field:
        return self._field([Piece(self.text[start:end], self.index.offset(start), why)], start, end)

    def _pieces(self, part: WordPart) -> list[Piece]:
        """Return literal text as pieces of consecutive characters in the file."""
        if part.why or self.index.origins is None:
            return [Piece(part.text, self.index.offset(part.start), part.why)]
        offsets = [self.index.offset(part.start + at) for at in range(len(part.text))]
        cuts = [at for at in range(1, len(offsets)) if offsets[at] != offsets[at - 1] + 1]
        rows = zip([0, *cuts], [*cuts, len(offsets)], strict=True)
        return [Piece(part.text[first:last], offsets[first] if offsets else 0) for first, last in rows]

    def _joined(self, parts: Sequence[WordPart], depth: int) -> list[Piece]:
        pieces: list[Piece] = []
        for part in parts:
            if not part.expands:
                pieces += self._pieces(part)
                continue
            offset = self.index.offset(part.start)
            for at, field in enumerate(self._expanded(part, depth)):
                self._spend(len(field.pieces), 0)
                pieces += [Piece(" ", offset)] * bool(at)
                for piece in field.pieces:
                    pieces.append(Piece(piece.text or part.text, offset, piece.why) if piece.why else piece)
        return pieces

    def _spend(self, characters: int, words: int = 1) -> None:
        self.spent += characters + COST_OF_A_WORD * words
        if self.spent > MOST_CHARACTERS:
            raise UnreadableText(f"its variables expand to more than {MOST_CHARACTERS} characters")

    def _expanded(self, part: WordPart, depth: int) -> list[Field]:
        """Return the fields of one expansion."""
        tree = part.tree
        end = part.start + len(part.text)
        if depth >= DEEPEST:
            return [self._unknown(part.start, end, "defaults are nested too deeply")]
        if tree is None or tree.type == "expansion":
            return self._parameter(part, depth)
        if tree.type == "arithmetic_expansion":
            return [self._arithmetic(part, tree)]
        if part.text.startswith("$((") and part.text.endswith("))"):
            return [self._arithmetic_of_a_default(part)]
        is_pwd = part.text in _WORKING_DIRECTORY
        return [self._started_in(part) if is_pwd else self._unknown(part.start, end, "it is the output of a command")]

    def _arithmetic(self, part: WordPart, tree: "Tree") -> Field:
        """Return the number of `$((...))`, with all digits at the place of the dollar."""
        return self._counted(part, self._number(tree, 0))

    def _arithmetic_of_a_default(self, part: WordPart) -> Field:
        """Return the number in `${NAME:-$((...))}`, which the grammar takes for a command in two pairs of brackets."""
        alone = f"echo {part.text}"
        tree = parsed(alone).children[0].children[-1]
        is_arithmetic, expander = tree.type == "arithmetic_expansion", Expander(alone, self.index, self.variables)
        return self._counted(part, expander._number(tree, 0) if is_arithmetic else None)

    def _counted(self, part: WordPart, number: int | None) -> Field:
        end, offset = part.start + len(part.text), self.index.offset(part.start)
        if number is None:
            return self._unknown(part.start, end, "it is arithmetic on what the file does not tell")
        return self._field([Piece(digit, offset) for digit in str(number)], part.start, end)

    def _parameter(self, part: WordPart, depth: int) -> list[Field]:
        """Return the fields of `$NAME` or `${...}`."""
        text, end = part.text, part.start + len(part.text)
        match = _BRACED.fullmatch(text)
        if text.startswith("${") and match is None:
            return [self._unknown(part.start, end, f"{text[:40]} is not evaluated")]
        name, element, operator, default = match.groups(default="") if match else (text[1:], "", "", "")
        value = self.variables.look_up(name, element)
        empty = value is None or (operator.startswith(":") and not texts(value).strip())
        if operator.endswith("+"):
            if value is not None and any(field.why for field in value):
                return [self._unknown(part.start, end, f"whether {name} is set is not known")]
            return [] if empty else [self._default(part, default, depth)]
        if value is not None and not (empty and operator):
            self.variables.assumed.update(self.variables.rests_on.get(name, {}))
            return value
        if operator.endswith(("-", "=")):
            fields = [self._default(part, default, depth)]
            if value is None:
                self.variables.assumed[name] = texts(fields)
            if operator.endswith("="):
                self.variables.set(name, fields)
            return fields
        return [self._started_in(part) if name == "PWD" else self._unknown(part.start, end, _unset(name))]

    def _started_in(self, part: WordPart) -> Field:
        """Return the folder in which the script is started."""
        self.variables.assumed["PWD"] = "."
        return self._field([Piece(".", self.index.offset(part.start))], part.start, part.start + len(part.text))

    def _default(self, part: WordPart, text: str, depth: int) -> Field:
        """Return the word in `${NAME:-word}`."""
        end = part.start + len(part.text) - 1
        quoting = DOUBLE if part.quoted and not re.search("[\"']", text) else PLAIN
        trees = part.tree.children if part.tree is not None else ()
        parts = parts_of(self.text, trees, end - len(text), end, quoting)
        return self._field(self._joined(parts, depth + 1), end - len(text), end)

    def _number(self, tree: "Tree", depth: int) -> int | None:
        """Return the value of a part of `$((...))`; None if the script does not contain it."""
        inside = [child for child in tree.children if child.is_named]
        signs = [child.type for child in tree.children if not child.is_named]
        if tree.has_error or depth > DEEPEST_ARITHMETIC:
            return None
        if tree.type in {"arithmetic_expansion", "parenthesized_expression"}:
            return self._number(inside[0], depth + 1) if len(inside) == 1 else None
        if tree.type == "unary_expression" and len(inside) == 1 and signs in (["-"], ["+"]):
            number = self._number(inside[0], depth + 1)
            return number if number is None or signs == ["+"] else -number
        if tree.type == "binary_expression" and len(inside) == 2 and len(signs) == 1:
            left, right = self._number(inside[0], depth + 1), self._number(inside[1], depth + 1)
            return None if left is None or right is None else _combined(signs[0], left, right)
        written = self.text[tree.start_byte : tree.end_byte].strip()
        name = _NAME.fullmatch(written)
        if name is not None:
            value = self.variables.look_up(name[1] or name[2])
            self.variables.assumed.update(self.variables.rests_on.get(name[1] or name[2], {}))
            written = "" if value is None or any(field.why for field in value) else texts(value).strip()
        return int(written) if _NUMBER.fullmatch(written) else None


def _combined(sign: str, left: int, right: int) -> int | None:
    if sign in {"/", "%"}:
        if right == 0:
            return None
        # Towards zero, where Python rounds down.
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if sign == "/" else left - quotient * right
    result = {"+": left + right, "-": left - right, "*": left * right}.get(sign)
    return result if result is not None and abs(result) <= LARGEST else None


def _expands_too_often(parts: Sequence[WordPart]) -> bool:
    return sum(part.expands for part in parts) > MOST_EXPANSIONS


def _unset(name: str) -> str:
    """Return why a variable that is set nowhere is unknown."""
    if name in {"@", "*"}:
        return "the arguments that the script is called with, or sets"
    if name.isdigit():
        return f"argument {name} of the script or function"
    return f"${name} is set nowhere in this file" if name.isidentifier() else f"${name} is known only when it runs"
