"""Values of expressions in Python source: of literals, names that the file binds once to one, and f-strings of both.

Everything else is known only when the program runs, and is Unknown with the reason: arguments and results of functions,
options and attributes, and what a loop or a condition decides.
"""

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rlaudit.configs.syntax.node import REST, Node
from rlaudit.configs.syntax.python_names import Bound, names_of
from rlaudit.configs.syntax.python_text import PythonText, parse
from rlaudit.configs.syntax.python_walk import DEEPEST, At, Function, nodes_of
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

MOST_VALUES = 20_000
LONGEST_TEXT = 10_000
LARGEST = 1e12
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


class PythonValues:
    """Gives expressions of one text as nodes, as far as their values are in the text. Raises UnreadableText."""

    def __init__(self, text: str, path: str) -> None:
        self.tree = parse(text)
        self.text = PythonText(text, path)
        self.names = names_of(self.tree)
        self._count = 0

    def node(self, expression: ast.expr, at: At, setting: str = "", key: Place | None = None) -> Node:
        """Return an expression as a node. at: the node that it is part of."""
        return self._node(expression, at.functions, setting, key, 0)

    def _node(
        self, expression: ast.expr, functions: tuple[Function, ...], setting: str, key: Place | None, depth: int
    ) -> Node:
        place = self.text.place(expression, setting)
        value = self._value(expression, functions, setting, depth)
        if isinstance(value, Unknown):
            value = replace(value, by_run=True)
        text = self.text.source(place) if not isinstance(value, dict | tuple) else ""
        return Node(value, place, key, text)

    def _value(self, expression: ast.expr, functions: tuple[Function, ...], setting: str, depth: int) -> Any:  # noqa: PLR0911 - one for each kind of expression
        """Return what an expression evaluates to, or Unknown."""
        self._count += 1
        if depth > DEEPEST or self._count > MOST_VALUES:
            return Unknown("the expression is nested too deeply")
        deeper = depth + 1
        match expression:
            case ast.Constant(value=constant):
                is_plain = constant is None or isinstance(constant, bool | int | float | str)
                return constant if is_plain else Unknown("bytes")
            case ast.Dict():
                return self._mapping(expression, functions, setting, deeper)
            case ast.List() | ast.Tuple() | ast.Set():
                return tuple(self._node(element, functions, setting, None, deeper) for element in expression.elts)
            case ast.Name():
                return self._name(expression, functions, setting, deeper)
            case ast.UnaryOp():
                return _negated(expression.op, self._value(expression.operand, functions, setting, deeper))
            case ast.BinOp():
                left = self._value(expression.left, functions, setting, deeper)
                return _computed(expression.op, left, self._value(expression.right, functions, setting, deeper))
            case ast.JoinedStr():
                return self._joined(expression, functions, deeper)
            case ast.IfExp():
                return self._either(expression, functions, setting, deeper)
            case ast.Call(func=ast.Name(id="dict")):
                return self._made(expression, functions, setting, deeper)
            case ast.Attribute() if dtype := _torch_dtype(expression):
                return dtype
        default = self._option(expression.attr) if isinstance(expression, ast.Attribute) else _variable(expression)
        return Unknown(f"{_short(expression)} is known only when it runs", at_default=default)

    def _option(self, name: str) -> tuple[str, str] | None:
        """Return an option of the program's own command line with its default; None if it has none that is a text."""
        for at in nodes_of(self.tree):
            match at.node:
                case ast.Call(func=ast.Attribute(attr="add_argument"), args=[*names], keywords=keywords):
                    options = [option.value for option in names if isinstance(option, ast.Constant)]
                    default = next((word.value for word in keywords if word.arg == "default"), None)
                    if f"--{name}" in [str(option).replace("-", "_").replace("__", "--", 1) for option in options]:
                        match default:
                            case ast.Constant(value=str(value)):
                                return str(options[-1]), value
        return None

    def _either(self, expression: ast.IfExp, functions: tuple[Function, ...], setting: str, depth: int) -> Any:
        """Return what `a if c else b` can be."""
        values = [self._value(branch, functions, setting, depth) for branch in (expression.body, expression.orelse)]
        possible = [value.among if isinstance(value, Unknown) else (value,) for value in values]
        is_open = not all(possible) or any(isinstance(value, dict | tuple) for value in values)
        return Unknown(f"{_short(expression)} is known only when it runs", () if is_open else sum(possible, ()))

    def _mapping(self, expression: ast.Dict, functions: tuple[Function, ...], setting: str, depth: int) -> Any:
        """Return a dictionary display; unpacked dictionaries are merged in, unknown ones leave REST behind."""
        entries: dict[str, Node] = {}
        for key, value in zip(expression.keys, expression.values, strict=True):
            if key is None:
                inner = self._node(value, functions, setting, None, depth)
                entries.update(inner.value if isinstance(inner.value, dict) else {REST: inner})
                continue
            name = self._value(key, functions, setting, depth)
            if not isinstance(name, str):
                return name if isinstance(name, Unknown) else Unknown("a key of the dictionary is no text")
            entries[name] = self._node(value, functions, name, self.text.place(key, name), depth)
        return entries

    def _made(self, expression: ast.Call, functions: tuple[Function, ...], setting: str, depth: int) -> Any:
        """Return the value of `dict(a=1)`, `dict({...}, a=1)`."""
        entries: dict[str, Node] = {}
        for argument in expression.args:
            inner = self._value(argument, functions, setting, depth)
            if not isinstance(inner, dict):
                return Unknown("dict(...) of something that is not a literal")
            entries.update(inner)
        for keyword in expression.keywords:
            if keyword.arg is None:
                inner = self._node(keyword.value, functions, setting, None, depth)
                entries.update(inner.value if isinstance(inner.value, dict) else {REST: inner})
            else:
                place = self.text.keyword_place(keyword)
                entries[keyword.arg] = self._node(keyword.value, functions, keyword.arg, place, depth)
        return entries

    def _name(self, expression: ast.Name, functions: tuple[Function, ...], setting: str, depth: int) -> Any:
        """Return the value of a name."""
        binding = self.names.find(expression.id, functions)
        if binding is None:
            return Unknown(f"{expression.id} is assigned nowhere in this file")
        bound, around = binding
        if bound.value is None:
            return Unknown(bound.why)
        value = self._value(bound.value, around, setting, depth)
        return self._changed(expression, bound, value) if isinstance(value, dict) and bound.changed_at else value

    def _changed(self, name: ast.Name, bound: Bound, value: dict[str, Node]) -> dict[str, Node]:
        """Return a dictionary that is changed after it was made: all its values are unknown."""
        why = Unknown(f"line {bound.changed_at} changes {name.id}, which is known only when it runs")
        further = Node(why, self.text.place(name, ""))
        return {key: replace(node, value=why) for key, node in value.items()} | {REST: further}

    def _joined(self, expression: ast.JoinedStr, functions: tuple[Function, ...], depth: int) -> Any:
        """Return an f-string of known parts."""
        text = ""
        for part in expression.values:
            if isinstance(part, ast.FormattedValue):
                value = self._value(part.value, functions, "", depth)
                if isinstance(value, Unknown):
                    return replace(value, at_default=None)
                if not isinstance(value, bool | int | float | str) or part.format_spec is not None:
                    return Unknown("it is formatted when it runs")
                text += str(value)
            elif isinstance(part, ast.Constant):
                text += str(part.value)
        return text if len(text) <= LONGEST_TEXT else Unknown("it is a very long text")


def _negated(sign: ast.unaryop, value: Any) -> Any:
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


def _computed(sign: ast.operator, left: Any, right: Any) -> Any:
    """Return the sum or product of small numbers, or joined strings."""
    for side in (left, right):
        if isinstance(side, Unknown):
            return replace(side, at_default=None)
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if numbers and max(abs(left), abs(right)) < LARGEST and type(sign) in ARITHMETIC:
        try:
            return ARITHMETIC[type(sign)](left, right)
        except (ArithmeticError, ValueError):
            return Unknown("the computation fails")
    joins = isinstance(left, str) and isinstance(right, str) and isinstance(sign, ast.Add)
    if joins and len(left) + len(right) < LONGEST_TEXT:
        return left + right
    return Unknown("it is computed when it runs")


def _torch_dtype(expression: ast.Attribute) -> str:
    """Return vLLM's name of `torch.bfloat16`; "" for anything else."""
    is_torch = isinstance(expression.value, ast.Name) and expression.value.id == "torch"
    return (
        expression.attr if is_torch and expression.attr in {"bfloat16", "float16", "half", "float32", "float"} else ""
    )


def _variable(expression: ast.expr) -> tuple[str, str] | None:
    """Return A and b of `os.environ.get("A", "b")`, `os.getenv("A", "b")` or `os.getenv("A") or "b"`; else None."""
    match expression:
        case ast.BoolOp(values=[ast.Call(args=[name]) as call, default]):
            pass
        case ast.Call(args=[name, default]) as call:
            pass
        case _:
            return None
    if not (isinstance(name, ast.Constant) and isinstance(default, ast.Constant) and isinstance(default.value, str)):
        return None
    reads = ast.unparse(call.func).removeprefix("os.") in {"environ.get", "getenv"}
    return (str(name.value), default.value) if reads else None


def _short(expression: ast.expr) -> str:
    """Return an expression as text, for a reason."""
    try:
        text = " ".join(ast.unparse(expression).split())
    except (RecursionError, ValueError, AttributeError):
        return "an expression"
    return text if len(text) <= 60 else text[:57] + "..."
