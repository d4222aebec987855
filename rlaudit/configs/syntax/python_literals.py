"""Arithmetic on literals, and expressions that stand for a word of vLLM."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from rlaudit.configs.syntax.node import Unknown

LONGEST_TEXT = 10_000
LARGEST = 1e12
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def negated(sign: ast.unaryop, value: Any) -> Any:
    """Return the value of `-x`, `+x` or `not x`."""
    if isinstance(value, Unknown):
        return value
    if isinstance(sign, ast.USub) and isinstance(value, int | float):
        return -value
    if isinstance(sign, ast.UAdd) and isinstance(value, int | float):
        return value
    if isinstance(sign, ast.Not) and isinstance(value, bool):
        return not value
    return Unknown("it is computed when it runs")


def computed(sign: ast.operator, left: Any, right: Any) -> Any:
    """Sums and products of small numbers, and joined strings."""
    for side in (left, right):
        if isinstance(side, Unknown):
            return side
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if numbers and max(abs(left), abs(right)) < LARGEST and type(sign) in _ARITHMETIC:
        try:
            return _ARITHMETIC[type(sign)](left, right)
        except (ArithmeticError, ValueError):
            return Unknown("the computation fails")
    joins = isinstance(left, str) and isinstance(right, str) and isinstance(sign, ast.Add)
    if joins and len(left) + len(right) < LONGEST_TEXT:
        return left + right
    return Unknown("it is computed when it runs")


def torch_dtype(expression: ast.Attribute) -> str:
    """`torch.bfloat16` as vLLM's own word for it."""
    is_torch = isinstance(expression.value, ast.Name) and expression.value.id == "torch"
    return (
        expression.attr if is_torch and expression.attr in {"bfloat16", "float16", "half", "float32", "float"} else ""
    )


def short(expression: ast.expr) -> str:
    """Return an expression as text, for a reason."""
    try:
        text = " ".join(ast.unparse(expression).split())
    except (RecursionError, ValueError, AttributeError):
        return "an expression"
    return text if len(text) <= 60 else text[:57] + "..."


def converted(kind: str, value: Any) -> Any:
    """Return the value of `int(x)`, `float(x)`, `str(x)` or `bool(x)`."""
    kinds: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "str": str, "bool": bool}
    if isinstance(value, bool | int | float | str) and len(str(value)) < 100:
        try:
            return kinds[kind](value)
        except (ValueError, OverflowError):
            return Unknown(f"{kind}({value!r}) fails")
    return value if isinstance(value, Unknown) else Unknown(f"{kind}(...) of a collection")
