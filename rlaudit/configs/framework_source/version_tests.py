"""What a test about vLLM's version comes to in one release: `vllm.__version__ >= "0.8.1"`, `parse(version("vllm"))`.

Texts are compared as Python compares them, and so "0.18.1" is less than "0.8.1". What is not about the version, or more
than that, has no answer.
"""

import ast
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from packaging.version import InvalidVersion, Version

_ASKING = {"version", "get_version", "get_package_version"}
_PARSING = {"Version", "parse", "parse_version"}
_ORDER: Mapping[type[ast.cmpop], Any] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_SAME: Mapping[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.In: lambda one, many: one in many, ast.NotIn: lambda one, many: one not in many,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_PARTS = {"release", "major", "minor", "micro", "base_version", "public"}
# How deep functions that ask for the version may call each other.
_DEEPEST = 4


@dataclass(frozen=True)
class Told:
    """A value that is known. about: whether it follows from vLLM's version."""

    value: Any
    about: bool


@dataclass(eq=False)
class VersionTests:
    """Expressions of one file under one release. names: what its variables are known to hold. functions: its own."""

    version: Version
    names: dict[str, Told] = field(default_factory=dict)
    functions: Mapping[str, ast.FunctionDef] = field(default_factory=dict)
    depth: int = 0

    def test(self, node: ast.expr) -> bool | None:
        """Whether a test about the version holds; None for any other."""
        told = self.value(node)
        return bool(told.value) if told is not None and told.about else None

    def value(self, node: ast.expr) -> Told | None:  # noqa: PLR0911 - one line for each kind of expression
        """What an expression is known to be."""
        match node:
            case ast.Constant():
                return Told(node.value, False)
            case ast.Name():
                return self.names.get(node.id)
            case ast.Attribute(value=ast.Name(id="vllm"), attr="__version__"):
                return Told(str(self.version), True)
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                return self.names.get(f"self.{attribute}")
            case ast.Attribute(value=owner, attr=part) if part in _PARTS:
                whole = self.value(owner)
                has = whole is not None and isinstance(whole.value, Version)
                return Told(getattr(whole.value, part), whole.about) if whole is not None and has else None
            case ast.Tuple() | ast.List() | ast.Set():
                parts = [self.value(one) for one in node.elts]
                told = [one for one in parts if one is not None]
                kind = tuple if isinstance(node, ast.Tuple) else list
                return Told(kind(one.value for one in told), any(one.about for one in told)) if told == parts else None
            case ast.Subscript():
                return self._part(node)
            case ast.GeneratorExp(elt=ast.Call(func=ast.Name(id="int"), args=[ast.Name()]), generators=[source]):
                return self._numbers(source.iter) if not source.ifs else None
            case ast.UnaryOp(op=ast.Not()):
                inner = self.value(node.operand)
                return Told(not inner.value, inner.about) if inner is not None else None
            case ast.BoolOp():
                return self._joined(node)
            case ast.Compare(ops=[operation], comparators=[right]):
                return self._compared(node.left, operation, right)
            case ast.Call():
                return self._called(node)
        return None

    def misordered(self, node: ast.expr) -> bool:
        """Whether texts are compared here, and versions would compare otherwise."""
        match node:
            case ast.Compare(ops=[operation], comparators=[right]) if type(operation) in _ORDER:
                sides = (self.value(node.left), self.value(right))
                if any(one is None or not isinstance(one.value, str) for one in sides):
                    return False
                told = [one for one in sides if one is not None]
                versions = [_version(one.value) for one in told]
                compare = _ORDER[type(operation)]
                return (any(one.about for one in told) and None not in versions
                        and compare(*(one.value for one in told)) is not compare(*versions))  # fmt: skip
        return False

    def _joined(self, node: ast.BoolOp) -> Told | None:
        parts = [self.value(one) for one in node.values]
        ends = isinstance(node.op, ast.Or)
        decisive = next((one for one in parts if one is not None and bool(one.value) is ends), None)
        if decisive is not None:
            return Told(ends, decisive.about)
        told = [one for one in parts if one is not None]
        return Told(not ends, any(one.about for one in told)) if told == parts else None

    def _compared(self, left: ast.expr, operation: ast.cmpop, right: ast.expr) -> Told | None:
        sides = self.value(left), self.value(right)
        compare = {**_ORDER, **_SAME}.get(type(operation))
        if compare is None or sides[0] is None or sides[1] is None:
            return None
        try:
            return Told(compare(sides[0].value, sides[1].value), sides[0].about or sides[1].about)
        except TypeError:
            return None

    def _called(self, node: ast.Call) -> Told | None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [self.value(one) for one in node.args]
        first = given[0] if given else None
        if isinstance(node.func, ast.Name) and name in self.functions:
            return self._own(self.functions[name], given)
        if name in _ASKING and first is not None and first.value == "vllm":
            return Told(str(self.version), True)
        if name in _PARSING and first is not None and isinstance(first.value, str):
            version = _version(first.value)
            return Told(version, first.about) if version is not None else None
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, first)
        return self._as_tuple(node, name, first)

    def _method(self, function: ast.Attribute, first: Told | None) -> Told | None:
        """A method of a text, with its first argument."""
        if first is None:
            return None
        if function.attr == "group":
            return self._matched(function.value, first.value)
        text = self.value(function.value)
        if not _is_text(text):
            return None
        if function.attr == "startswith" and isinstance(first.value, str | tuple):
            return Told(text.value.startswith(first.value), text.about)
        if function.attr == "split" and isinstance(first.value, str) and first.value:
            return Told(text.value.split(first.value), text.about)
        return None

    def _as_tuple(self, node: ast.Call, name: str, first: Told | None) -> Told | None:
        match name, node.args:
            case "tuple", [_] if first is not None and isinstance(first.value, list):
                return Told(tuple(first.value), first.about)
            case "map", [ast.Name(id="int"), texts]:
                return self._numbers(texts)
        return None

    def _own(self, function: ast.FunctionDef, given: list[Told | None]) -> Told | None:
        """A function of the file: the one value that its returns are known to give, where it asks for the version.
        What an `except` returns is for a vLLM that is not there.
        """
        names = {one.arg: told for one, told in zip(function.args.args, given, strict=False) if told is not None}
        inside = replace(self, names={**self.names, **names}, depth=self.depth + 1)
        if inside.depth > _DEEPEST:
            return None
        handlers = [one for one in ast.walk(function) if isinstance(one, ast.ExceptHandler)]
        passed = {id(one) for handler in handlers for one in ast.walk(handler)}
        returns = [one for one in ast.walk(function) if isinstance(one, ast.Return) and id(one) not in passed]
        told = [inside.value(one.value) if one.value is not None else None for one in returns]
        return told[0] if len(told) == 1 and told[0] is not None and told[0].about else None

    def _part(self, node: ast.Subscript) -> Told | None:
        """`version.split("+")[0]`, `parse(version).release[:2]`."""
        whole = self.value(node.value)
        if whole is None or not isinstance(whole.value, list | tuple):
            return None
        try:
            match node.slice:
                case ast.Constant(value=int(index)):
                    return Told(whole.value[index], whole.about)
                case ast.Slice(lower=None, upper=ast.Constant(value=int(end)), step=None):
                    return Told(whole.value[:end], whole.about)
        except IndexError:
            pass
        return None

    def _numbers(self, node: ast.expr) -> Told | None:
        """Texts as numbers: `map(int, texts)`, `int(text) for text in texts`."""
        texts = self.value(node)
        if texts is None or not isinstance(texts.value, list):
            return None
        if not all(isinstance(one, str) and one.isdigit() for one in texts.value):
            return None
        return Told([int(one) for one in texts.value], texts.about)

    def _matched(self, node: ast.expr, group: Any) -> Told | None:
        """`re.match(pattern, version).group(1)`, which takes the numbers out of a version."""
        match node:
            case ast.Call(func=ast.Attribute(attr="match" | "search" as how), args=[pattern, text]):
                told, wanted = self.value(text), self.value(pattern)
                if not _is_text(told) or not _is_text(wanted):
                    return None
                try:
                    found = getattr(re, how)(wanted.value, told.value)
                    return Told(found[group], told.about) if found is not None else None
                except (re.error, IndexError):
                    return None
        return None


def _is_text(told: Told | None) -> TypeGuard[Told]:
    return told is not None and isinstance(told.value, str)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
