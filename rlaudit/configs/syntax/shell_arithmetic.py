"""Arithmetic of a shell, `$((a + 2 * b))`, on whole numbers that the script tells.

Read: + - * / % and brackets; a name with or without its dollar. Not read: comparisons, bits, powers, assignments, and
numbers in another base. Source: POSIX.1-2017, Shell Command Language 2.6.4; a division drops what is behind the point.
"""

import ast
import re
from collections.abc import Callable

from rlaudit.configs.syntax.shell_fields import Field, Piece, texts, unknown_at
from rlaudit.configs.syntax.shell_words import Part

LONGEST = 500
LARGEST = 10**15
DEEPEST = 40
_NAME = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


def counted(part: Part, look_up: Callable[[str], list[Field] | None]) -> tuple[Field, frozenset[str]]:
    """The number of `$((...))`, every digit of it at the place of the dollar, and the variables that it rests on."""
    names = set()

    def value_of(name: str) -> str | None:
        found = look_up(name)
        names.add(name)
        return None if found is None or any(one.why for one in found) else texts(found)

    number = evaluated(part.text[3:-2], value_of)
    if number is None:
        return unknown_at(part, "it is arithmetic on what the file does not tell"), frozenset()
    digits = tuple(Piece(digit, part.start) for digit in str(number))
    return Field(digits, part.start, part.start + len(part.text), part.text), frozenset(names)


def evaluated(text: str, value_of: Callable[[str], str | None]) -> int | None:
    """The number that `text`, the inside of the brackets, stands for; None where it cannot be told.

    value_of: the text of a variable, or None.
    """
    if len(text) > LONGEST:
        return None
    plain = _NAME.sub(lambda match: match.group(1) or match.group(2), text).strip()
    try:
        return _number(ast.parse(plain, mode="eval").body, value_of, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _number(node: ast.expr, value_of: Callable[[str], str | None], depth: int) -> int | None:
    if depth > DEEPEST:
        return None
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        told = value_of(node.id)
        return int(told) if told is not None and re.fullmatch(r"-?(0|[1-9]\d{0,14})", told.strip()) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _number(node.operand, value_of, depth + 1)
        return inner if inner is None or isinstance(node.op, ast.UAdd) else -inner
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, value_of, depth + 1), _number(node.right, value_of, depth + 1)
        return None if left is None or right is None else _combined(node.op, left, right)
    return None


def _combined(sign: ast.operator, left: int, right: int) -> int | None:
    if isinstance(sign, ast.Add | ast.Sub):
        result = left + right if isinstance(sign, ast.Add) else left - right
    elif isinstance(sign, ast.Mult):
        result = left * right
    elif isinstance(sign, ast.Div | ast.Mod) and right != 0:
        # Towards zero, where Python rounds down.
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        result = quotient if isinstance(sign, ast.Div) else left - quotient * right
    else:
        return None
    return result if abs(result) <= LARGEST else None
