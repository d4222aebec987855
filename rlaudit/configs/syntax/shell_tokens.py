"""What a shell script is made of: tokens, and words in parts."""

from dataclasses import dataclass


class UnreadableShell(ValueError):
    """Not a shell script, or one that ends inside a quote. `line` is 1-based."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Part:
    """A piece of a word: literal text whose characters stand at start, start + 1, ..., or an expansion's source."""

    text: str
    start: int
    quoted: bool
    expansion: bool = False


@dataclass(frozen=True)
class Token:
    """kind: word, array, operator, redirect or heredoc. name: of an array, operator or redirection.

    parts: of a word, of a redirection's target, or of a here-document's body. elements: an array's words.
    """

    kind: str
    start: int
    end: int
    name: str = ""
    parts: tuple[Part, ...] = ()
    elements: tuple["Token", ...] = ()

    @property
    def literal(self) -> str | None:
        """The text of a word without quotes and expansions; None for any other."""
        if self.kind == "word" and all(not part.quoted and not part.expansion for part in self.parts):
            return "".join(part.text for part in self.parts)
        return None
