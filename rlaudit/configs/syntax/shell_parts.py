"""Words of a shell script: cut into literal text and expansions, and after expansion, into pieces that keep their place
in the file, some of them unknown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_EXPANSIONS = {"expansion", "command_substitution", "arithmetic_expansion", "process_substitution"}
_QUOTES = {"string", "raw_string", "ansi_c_string", "translated_string"}
# A name behind a dollar is found in the text, since the grammar takes the dollar of `$a/$b/c` for an end of its word.
_VARIABLE = r"(?P<variable>\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]))"
# What a shell replaces outside of quotes and in double quotes.
PLAIN = re.compile(rf"\\\r?\n|\\(?P<quoted>.)|{_VARIABLE}|(?P<placeholder><[^<>]*>)", re.DOTALL)
DOUBLE = re.compile(rf'\\\r?\n|\\(?P<quoted>["\\$`])|{_VARIABLE}|(?P<placeholder>(?!))')
_WORD = re.compile(r"(?:[^\s\\]|\\[^\r\n])+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "e": "\x1b", "\\": "\\", "'": "'", '"': '"'}


@dataclass(frozen=True)
class WordPart:
    """A part of a word as it is written."""

    text: str
    start: int
    quoted: bool
    expands: bool = False
    # An expansion in brackets.
    tree: "Tree | None" = None
    # The reason for text left to fill in.
    why: str = ""


@dataclass(frozen=True)
class Word:
    """text[start:end] of a script, and the nodes in it."""

    trees: tuple["Tree", ...]
    start: int
    end: int


def joined(trees: Iterable["Tree"], further: Iterable[Word] = ()) -> list[Word]:
    """Return the words of nodes: nodes with no blank between them are one word, which the grammar may cut up."""
    parts = [*(Word((tree,), tree.start_byte, tree.end_byte) for tree in trees), *further]
    words: list[list[Word]] = []
    for part in sorted(parts, key=lambda part: part.start):
        if words and words[-1][-1].end == part.start:
            words[-1].append(part)
        else:
            words.append([part])
    return [Word(tuple(tree for part in word for tree in part.trees), word[0].start, word[-1].end) for word in words]


def left_out(text: str, trees: Sequence["Tree"]) -> Iterator[Word]:
    """Yield the words between nodes that are in no node: the grammar drops a dash in front of a here-document."""
    for before, after in pairwise(sorted(trees, key=lambda tree: tree.start_byte)):
        for match in _WORD.finditer(text, before.end_byte, max(before.end_byte, after.start_byte)):
            yield Word((), match.start(), match.end())


@dataclass(frozen=True)
class Piece:
    """Text at start, start + 1, ... of the file, or an unknown with the reason and a text in its place."""

    text: str
    start: int
    why: str = ""


@dataclass(frozen=True)
class Field:
    """One word after expansion."""

    pieces: tuple[Piece, ...]
    # start, end: its place in the file.
    start: int
    end: int
    # Its text there, quotes included.
    raw: str

    @classmethod
    def unknown(cls, why: str, start: int) -> "Field":
        """Return a field whose value is not known from the file."""
        return cls((Piece("", start, why),), start, start, "")

    @cached_property
    def text(self) -> str:
        """Its characters; unknown pieces as they are written."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def why(self) -> str:
        """Why it is unknown; empty if it is known."""
        return next((piece.why for piece in self.pieces if piece.why), "")

    def origins(self) -> list[int]:
        """Return the offset in the file of every character of `text`, and of its end."""
        offsets = [piece.start + at for piece in self.pieces for at in range(len(piece.text))]
        return [*offsets, offsets[-1] + 1 if offsets else self.start]

    def node(self, index: LineIndex) -> Node:
        """Return it as a node."""
        why = self.why
        return Node(Unknown(why) if why else self.text, index.place_in_file(self.start, self.end), None, self.raw)


def parts_of(text: str, trees: Sequence["Tree"], start: int, end: int, quoting: re.Pattern[str]) -> list[WordPart]:
    """Return the parts of text[start:end], a word or the inside of one. trees: the nodes in it. quoting: PLAIN or
    DOUBLE.
    """
    parts: list[WordPart] = []
    at = start
    for tree in _quotes_and_expansions(trees):
        begin = tree.end_byte - len(text[tree.start_byte : tree.end_byte].lstrip())
        if begin < at or tree.end_byte > end:
            continue
        parts += _literal(text, at, begin, quoting)
        at = tree.end_byte
        if tree.type in _EXPANSIONS:
            parts.append(WordPart(text[begin:at], begin, quoting is not PLAIN, True, tree))
        elif tree.type == "raw_string":
            parts.append(WordPart(text[begin + 1 : at - 1], begin + 1, True))
        elif tree.type == "ansi_c_string":
            plain = re.sub(
                r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[begin + 2 : at - 1], flags=re.S
            )
            parts.append(WordPart(plain, begin + 2, True))
        else:
            begin += text[begin] == "$"
            parts += parts_of(text, tree.children, begin + 1, at - 1, DOUBLE) or [WordPart("", begin + 1, True)]
    return [*parts, *_literal(text, at, end, quoting)]


def _quotes_and_expansions(trees: Sequence["Tree"]) -> Iterator["Tree"]:
    waiting = list(reversed(trees))
    while waiting:
        node = waiting.pop()
        if node.type in _EXPANSIONS or node.type in _QUOTES:
            yield node
        else:
            waiting += reversed(node.children)


def _literal(text: str, start: int, end: int, quoting: re.Pattern[str]) -> Iterator[WordPart]:
    quoted, at = quoting is not PLAIN, start
    for match in quoting.finditer(text, start, end):
        if match.start() > at:
            yield WordPart(text[at : match.start()], at, quoted)
        at = match.end()
        if match["variable"]:
            yield WordPart(match["variable"], match.start(), quoted, True)
        elif match["placeholder"]:
            yield WordPart(
                match["placeholder"], match.start(), quoted, why=f"{match['placeholder']} is left to fill in"
            )
        elif match["quoted"] is not None:
            yield WordPart(match["quoted"], match.start("quoted"), True)
    if end > at:
        yield WordPart(text[at:end], at, quoted)


def split(pieces: tuple[Piece, ...]) -> list[list[Piece]]:
    """Return the words of an unquoted expansion."""
    words: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.why:
            words[-1].append(piece)
            continue
        for match in re.finditer(r"\s+|\S+", piece.text):
            if match.group()[0].isspace():
                if words[-1]:
                    words.append([])
            else:
                words[-1].append(Piece(match.group(), piece.start + match.start()))
    return [word for word in words if word]


def where_written(pieces: list[Piece], span: Field | None) -> Field:
    """Return a word of a variable's value, at its place in the file."""
    if span is not None and span.raw:
        return span
    first, last = pieces[0].start, pieces[-1].start + len(pieces[-1].text)
    return Field(tuple(pieces), first, max(first, last), "".join(piece.text for piece in pieces))


def texts(fields: list[Field]) -> str:
    """Return all words, with blanks between."""
    return " ".join(field.text for field in fields)
