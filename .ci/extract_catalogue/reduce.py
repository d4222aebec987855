"""Reduces the expression of a default to plain data, through names, class attributes and dataclass fields."""

import ast
import operator
from dataclasses import dataclass
from typing import Any

from extract_catalogue.modules import FieldNode, Module, Tree
from rlaudit.configs.syntax.python_values import ARITHMETIC

DEEPEST = 12
_ARITHMETIC = {**ARITHMETIC, ast.Pow: operator.pow, ast.LShift: operator.lshift}
_EMPTY: dict[str, Any] = {"list": [], "set": [], "tuple": [], "dict": {}, "frozenset": []}
_DICTIONARIES = ("dict", "UserDict", "TypedDict")


@dataclass(frozen=True)
class Expression:
    """A default that only running code can tell, as written."""

    text: str


@dataclass(frozen=True)
class Instance:
    """A default that is an object of a class of the release, with that class's own defaults."""

    cls: str


class Required:
    """There is no default."""


REQUIRED = Required()
_BEYOND = object()  # what cannot be reduced; None is a default like any other


def as_json(value: Any) -> Any:
    """A reduced default as the catalogue stores it."""
    match value:
        case Expression(text=text):
            return {"expression": text}
        case Instance(cls=name):
            return {"object": name}
        case Required():
            return {"required": True}
    return value


def default_of(tree: Tree, field: FieldNode) -> Any:
    """The default of a dataclass field: JSON data, Expression, Instance or REQUIRED."""
    return REQUIRED if field.default is None else reduced(tree, field.default, field.module)


def reduced(tree: Tree, node: ast.expr, module: Module, depth: int = 0) -> Any:
    """An expression as JSON data, or Expression, Instance, REQUIRED where it is none."""
    value = _reduced(tree, node, module, depth + 1) if depth <= DEEPEST else _BEYOND
    return Expression(" ".join(ast.unparse(node).split())) if value is _BEYOND else value


def _reduced(tree: Tree, node: ast.expr, module: Module, depth: int) -> Any:  # noqa: PLR0911 - one line per kind
    match node:
        case ast.Constant(value=value):
            return value if value is None or isinstance(value, bool | int | float | str) else _BEYOND
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = reduced(tree, operand, module, depth)
            return -value if isinstance(value, int | float) else _BEYOND
        case ast.BinOp(left=left, op=op, right=right):
            pair = reduced(tree, left, module, depth), reduced(tree, right, module, depth)
            if all(isinstance(value, int | float) for value in pair) and type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](*pair)
            return _BEYOND
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return _plain([reduced(tree, element, module, depth) for element in elements])
        case ast.Dict(keys=keys, values=values):
            pairs = [(reduced(tree, k, module, depth), reduced(tree, v, module, depth))
                     for k, v in zip(keys, values, strict=True) if k is not None]  # fmt: skip
            flat = _plain([part for pair in pairs for part in pair])
            return _BEYOND if flat is _BEYOND or len(pairs) < len(keys) else {str(key): value for key, value in pairs}
        case ast.Name(id=name):
            found = tree.find(name, module)
            if found is not None and isinstance(found[1], ast.expr):
                return reduced(tree, found[1], found[0], depth)
            return _BEYOND
        case ast.Attribute():
            return _attribute(tree, node, module, depth)
        case ast.Call():
            return _call(tree, node, module, depth)
        case ast.Lambda(body=body):
            return reduced(tree, body, module, depth)
    return _BEYOND


def _attribute(tree: Tree, node: ast.Attribute, module: Module, depth: int) -> Any:
    if node.attr in ("value", "name") and isinstance(node.value, ast.Attribute):
        return reduced(tree, node.value, module, depth)
    found = tree.find_class(node.value.id, module) if isinstance(node.value, ast.Name) else None
    if found is None:
        return _BEYOND
    bound = tree.class_value(node.attr, *found)
    if bound is None:
        return REQUIRED if node.attr in tree.fields(*found) else _BEYOND
    return reduced(tree, bound[1], bound[0], depth)


def _call(tree: Tree, node: ast.Call, module: Module, depth: int) -> Any:  # noqa: PLR0911 - one line per kind
    called = ast.unparse(node.func).split(".")[-1]
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if called == "get_field":
        name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
        attribute = ast.Attribute(node.args[0], str(name))
        return reduced(tree, attribute, module, depth)
    if called in ("field", "Field"):
        if "default_factory" in keywords:
            return _made_by(tree, keywords["default_factory"], module, depth)
        given = keywords.get("default") or next(iter(node.args), None)
        if given is None or (isinstance(given, ast.Constant) and given.value is ...):
            return REQUIRED
        return reduced(tree, given, module, depth)
    if called in ("cast", "SkipValidation") and node.args:
        return reduced(tree, node.args[-1], module, depth)
    if not node.args and not node.keywords:
        return _made_by(tree, node.func, module, depth)
    return _BEYOND


def _made_by(tree: Tree, factory: ast.expr, module: Module, depth: int) -> Any:
    if isinstance(factory, ast.Name):
        if factory.id in _EMPTY:
            return _EMPTY[factory.id]
        found = tree.find_class(factory.id, module)
        if found is not None:
            bases = [ast.unparse(base).split("[")[0].split(".")[-1] for base in found[1].bases]
            return {} if any(base in _DICTIONARIES for base in bases) else Instance(factory.id)
    if isinstance(factory, ast.Lambda):
        return reduced(tree, factory.body, module, depth)
    return Expression(f"{ast.unparse(factory)}()")


def _plain(values: list[Any]) -> Any:
    return _BEYOND if any(isinstance(value, Expression | Instance | Required) for value in values) else values
