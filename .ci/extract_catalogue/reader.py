"""What the reader of an environment variable returns when nothing is set, without running it."""

import ast
from collections.abc import Callable
from typing import Any

BEYOND = object()  # what cannot be told from the source
_GETTERS = ("os.getenv", "os.environ.get")
_METHODS = {"lower", "upper", "strip", "split"}
_TYPES: dict[str, Callable[[Any], Any]] = {"bool": bool, "int": int, "float": float, "str": str, "list": list}
_OWN = "sys.modules[__name__]."


class _Unreadable(Exception):
    """A part of a reader that is not understood."""


def unset_value(reader: ast.expr, others: Callable[[str], Any]) -> Any:
    """The value of a reader in an empty environment, or BEYOND. others: the same for another variable by name."""
    try:
        return _value(reader.body if isinstance(reader, ast.Lambda) else reader, others)
    except (_Unreadable, TypeError, ValueError, AttributeError):
        return BEYOND


def _value(node: ast.expr, others: Callable[[str], Any]) -> Any:  # noqa: PLR0911 - one line per kind
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=elements) | ast.Set(elts=elements) | ast.Tuple(elts=elements):
            return [_value(element, others) for element in elements]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, others) else orelse, others)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, others)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, others)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left, others) * _value(right, others)
        case ast.BoolOp(op=op, values=values):
            result: Any = None
            for part in values:
                result = _value(part, others)
                if bool(result) is isinstance(op, ast.Or):
                    break
            return result
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(left, op, right, others)
        case ast.Call():
            return _called(node, others)
        case ast.Attribute(attr=name) if ast.unparse(node) == f"{_OWN}{name}":
            return others(name)
    raise _Unreadable


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, others: Callable[[str], Any]) -> bool:
    if ast.unparse(right) == "os.environ":
        return isinstance(op, ast.NotIn)
    first, second = _value(left, others), _value(right, others)
    match op:
        case ast.In():
            return bool(first in second)
        case ast.NotIn():
            return first not in second
        case ast.Eq() | ast.Is():
            return bool(first == second)
        case ast.NotEq() | ast.IsNot():
            return bool(first != second)
    raise _Unreadable


def _called(node: ast.Call, others: Callable[[str], Any]) -> Any:
    name = ast.unparse(node.func)
    if name in _GETTERS:
        return _value(node.args[1], others) if len(node.args) > 1 else None
    if name in _TYPES and len(node.args) == 1:
        return _TYPES[name](_value(node.args[0], others))
    if name.startswith("maybe_convert") and _value(node.args[0], others) is None:
        return None
    if name.startswith("env_") and len(node.args) > 1:  # env_with_choices(name, default, choices)
        return _value(node.args[1], others)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return getattr(_value(node.func.value, others), node.func.attr)(*[_value(arg, others) for arg in node.args])
    raise _Unreadable
