"""Python source as a syntax tree, or a refusal with the reason."""

import ast
import sys
import warnings

MOST_CHARACTERS = 400_000


class UnreadablePython(ValueError):
    """Not Python 3, or nested too deeply. `line` is 1-based, 0 where unknown."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def parse(text: str) -> ast.Module:
    """The syntax tree. Raises UnreadablePython."""
    if len(text) > MOST_CHARACTERS:
        raise UnreadablePython(f"more than {MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        read_as = f"as read by Python {sys.version_info.major}.{sys.version_info.minor}"
        raise UnreadablePython(f"{error.msg or 'not Python'} ({read_as})", error.lineno or 0) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise UnreadablePython(str(error) or "nested too deeply") from None
