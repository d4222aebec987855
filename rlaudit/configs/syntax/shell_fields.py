"""Words of a shell script after expansion: pieces of text that remember where they stand, some of them unknown."""

import re
from dataclasses import dataclass
from functools import cached_property

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_words import Part

_ARGUMENT = re.compile(r"\$(?:[1-9]|OPTARG|\{(?:[1-9]\d*|OPTARG)(?:[#%].*)?\})", re.DOTALL)


@dataclass(frozen=True)
class Piece:
    """Text at start, start + 1, ... of the script, or an unknown with the reason and the text that stands for it."""

    text: str
    start: int
    why: str = ""


@dataclass(frozen=True)
class Field:
    """One word after expansion. start, end, raw: how it is written, quotes included."""

    pieces: tuple[Piece, ...]
    start: int
    end: int
    raw: str

    @classmethod
    def unknown(cls, why: str, start: int) -> "Field":
        """A word that the file does not tell."""
        return cls((Piece("", start, why),), start, start, "")

    @cached_property
    def text(self) -> str:
        """Its characters; unknown pieces as they are written."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def why(self) -> str:
        """Why it is unknown; empty where it is known."""
        return next((piece.why for piece in self.pieces if piece.why), "")

    def origins(self) -> list[int]:
        """The offset of every character of `text`, and of its end."""
        offsets = [piece.start + at for piece in self.pieces for at in range(len(piece.text))]
        return [*offsets, offsets[-1] + 1 if offsets else self.start]

    def node(self, index: LineIndex) -> Node:
        """As a node."""
        why = self.why
        return Node(Unknown(why) if why else self.text, index.place(self.start, self.end, ""), None, self.raw)


def split(pieces: tuple[Piece, ...]) -> list[list[Piece]]:
    """Words of an unquoted expansion."""
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
    """A word that came out of a variable, at the place where it is written."""
    if span is not None and span.raw:
        return span
    first, last = pieces[0].start, pieces[-1].start + len(pieces[-1].text)
    text = "".join(piece.text for piece in pieces)
    return Field(tuple(pieces), first, max(first, last), text)


def unknown_at(part: Part, why: str) -> Field:
    """An expansion that the file does not tell."""
    return Field((Piece(part.text, part.start, why),), part.start, part.start + len(part.text), part.text)


def unset(name: str) -> str:
    """Why a variable that is set nowhere is unknown."""
    if name in {"@", "*"}:
        return "the arguments that the script is called with"
    if name.isdigit():
        return f"argument {name} of the script or function"
    return f"${name} is set nowhere in this file" if name.isidentifier() else f"${name} is known only when it runs"


def texts(fields: list[Field]) -> str:
    """All words, with blanks between."""
    return " ".join(one.text for one in fields)


def from_caller(fields: list[Field]) -> bool:
    """Whether a value is one argument of the script, or of an option of it, and nothing else."""
    pieces = fields[0].pieces if len(fields) == 1 else ()
    return len(pieces) == 1 and bool(pieces[0].why) and _ARGUMENT.fullmatch(pieces[0].text) is not None
