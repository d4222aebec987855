"""Python source as a syntax tree, and the places of its expressions. It is parsed and never run."""

import ast
import re
import sys
import warnings
from functools import lru_cache

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.settings.place import Place

MOST_CHARACTERS = 400_000
_LINE_END = re.compile(r"\r\n|\r|\n")


@lru_cache(maxsize=16)
def parse(text: str) -> ast.Module:
    """Return the syntax tree. Every reader of a file shares it, so it must not be changed. Raises UnreadableText."""
    if len(text) > MOST_CHARACTERS:
        raise UnreadableText(f"more than {MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        read_as = f"as read by Python {sys.version_info.major}.{sys.version_info.minor}"
        raise UnreadableText(f"{error.msg or 'not Python'} ({read_as})", error.lineno or 0) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise UnreadableText(str(error) or "nested too deeply") from None


class PythonText:
    """A text and the places of its nodes of `ast`."""

    def __init__(self, text: str, path: str) -> None:
        self.index = LineIndex(text, path)
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]

    def place(self, node: ast.expr, setting: str) -> Place:
        """Return the place of an expression."""
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return self.index.place(start, max(start, end), setting)

    def keyword_place(self, keyword: ast.keyword) -> Place:
        """Return the place of a keyword's name."""
        start = self._offset(keyword.lineno, keyword.col_offset)
        return self.index.place(start, start + len(keyword.arg or ""), keyword.arg or "")

    def source(self, place: Place) -> str:
        """Return the text at a place."""
        return self.index.text[place.start : place.end]

    def _offset(self, line: int, column: int) -> int:
        """Return the characters before a place that `ast` gives in UTF-8 bytes of a line."""
        start = self._starts[min(line, len(self._starts) - 1) - 1]
        text = self.index.text[start : self._starts[min(line, len(self._starts) - 1)]]
        if text.isascii():
            return start + min(column, len(text))
        return start + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))


def span(node: ast.expr, text: str) -> tuple[int, int]:
    """Return start and end of an expression in characters."""
    place = PythonText(text, "").place(node, "")
    return place.start, place.end
