"""Resolve OmegaConf's `${...}` inside one document.

A reference to a key of the document takes its value; a string with text around references is joined. What another
file of a Hydra `defaults:` list, the command line or a custom resolver decides is unknown, with the reason. A default
(`${oc.env:TP,8}`, `${oc.select:a.b,8}`) counts as the value.
Source: OmegaConf 2.3, "Variable interpolation" and "Built-in resolvers" of its manual.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

from rlaudit.configs.syntax.flags import typed_by_hydra
from rlaudit.configs.syntax.node import Node
from rlaudit.unknown import Unknown

MOST_NODES = 20_000
LONGEST_CHAIN = 20
_RESOLVER = re.compile(r"[A-Za-z_][\w.]*(?=:)")
_TOO_MANY = f"the interpolations of this file make more than {MOST_NODES} values"

# Resolvers that projects register for arithmetic in their configs, as OmegaConf has none: `${mul:2,3}`.
_OF_NUMBERS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("mul", "multiply"), math.prod),
    **dict.fromkeys(("add", "sum"), sum),
    **dict.fromkeys(("sub", "subtract"), lambda numbers: reduce(operator.sub, numbers)),
    **dict.fromkeys(("int_div", "floordiv", "floor_div"), lambda numbers: reduce(operator.floordiv, numbers)),
    "max": max,
    "min": min,
}


def interpolate(root: Node) -> Node:
    """Replace every interpolation of a document by its value or by Unknown. Places stay those of the `${`."""
    return _Resolver(root).resolved(root, (), 0)


class _Resolver:
    def __init__(self, root: Node) -> None:
        self.root, self.count = root, 0
        self.active: list[tuple[str, ...]] = []
        self.composed = root.get("defaults") is not None

    def resolved(self, node: Node, path: tuple[str, ...], depth: int) -> Node:
        """Return the node without interpolations."""
        if not node.refers:
            return node
        self.count += 1
        if self.count > MOST_NODES:
            return replace(node, value=Unknown(_TOO_MANY))
        if isinstance(node.value, dict):
            entries = {key: self.resolved(child, (*path, key), depth) for key, child in node.value.items()}
            return replace(node, value=entries)
        if isinstance(node.value, tuple):
            elements = (self.resolved(child, (*path, str(at)), depth) for at, child in enumerate(node.value))
            return replace(node, value=tuple(elements))
        if isinstance(node.value, str) and "${" in node.value:
            return replace(node, value=self.string(node.value, path, depth))
        return node

    def string(self, text: str, path: tuple[str, ...], depth: int) -> Any:  # noqa: PLR0911 - one for each reason to be unknown
        """Return the value of a string that holds interpolations."""
        parts = _parts(text)
        if parts is None:
            return text if text.count("${") == text.count("\\${") else Unknown("an interpolation is not closed")
        if depth > LONGEST_CHAIN:
            return Unknown(f"more than {LONGEST_CHAIN} interpolations lead to one another")
        if path in self.active:
            return Unknown("the interpolation leads back to itself")
        self.active.append(path)
        try:
            values = [part if isinstance(part, str) else self.expression(part[0], path, depth) for part in parts]
        finally:
            self.active.pop()
        if len(values) == 1:
            return values[0]
        for value in values:
            if isinstance(value, Unknown):
                return value
            if isinstance(value, dict | tuple):
                return Unknown("a list or mapping is interpolated into text")
        return "".join(map(str, values))

    def expression(self, expression: str, path: tuple[str, ...], depth: int) -> Any:
        """Return the value of one `${expression}`."""
        self.count += 1
        if self.count > MOST_NODES:
            return Unknown(_TOO_MANY)
        if "${" in expression:
            inner = self.string(expression, (*path, "${}"), depth + 1)
            if not isinstance(inner, str):
                return inner if isinstance(inner, Unknown) else Unknown(f"${{{expression}}} is not a key")
            expression = inner
        resolver = _RESOLVER.match(expression)
        if resolver:
            return self.call(resolver.group(), expression[resolver.end() + 1 :].strip(), path, depth)
        return self.reference(expression.strip(), path, depth)

    def call(self, name: str, arguments: str, path: tuple[str, ...], depth: int) -> Any:  # noqa: PLR0911 - one for each resolver
        """Return the value of `${name:arguments}`."""
        key, comma, default = arguments.partition(",")
        if name in {"oc.env", "env"}:
            if comma:
                return _of_environment(_literal(default.strip()))
            return Unknown(f"the environment variable {key.strip()} decides")
        if name == "oc.select":
            if self.find(key.strip(), path) is not None:
                return self.reference(key.strip(), path, depth)
            if self.composed:
                return Unknown(f"{key.strip()} may be set in another file of the defaults list")
            return _literal(default.strip()) if comma else None
        if name == "oc.decode" and not comma:
            text = _literal(arguments)
            return _literal(text) if isinstance(text, str) else text
        if name in _OF_NUMBERS or name == "not":
            return _worked_out(name, [_literal(argument.strip()) for argument in arguments.split(",")])
        return Unknown(f"the resolver {name} is not evaluated")

    def reference(self, key: str, path: tuple[str, ...], depth: int) -> Any:
        """Return the value of another key."""
        reference = self.find(key, path)
        if reference is None:
            where = "another file of the defaults list or the command line" if self.composed else "not in this file"
            return Unknown(f"{key} is set in {where}" if self.composed else f"{key} is {where}")
        node, target = reference
        if any(target == active[: len(target)] and active != target for active in self.active):
            return Unknown(f"{key} contains this very interpolation")
        return self.resolved(node, target, depth + 1).value

    def find(self, key: str, path: tuple[str, ...]) -> tuple[Node, tuple[str, ...]] | None:
        """Return the node that a key leads to, and its path; leading dots count containers upwards."""
        stripped = key.lstrip(".")
        dots = len(key) - len(stripped)
        home: tuple[str, ...] = ()
        if dots:
            home = tuple(part for part in path if part != "${}")[:-dots] if dots <= len(path) else ()
        names = [name for name in re.split(r"[.\[\]]+", stripped) if name]
        target = (*home, *names)
        node: Node | None = self.root
        for name in target:
            if node is None:
                return None
            if isinstance(node.value, tuple):
                node = (
                    node.value[int(name)] if name.isdigit() and len(name) < 9 and int(name) < len(node.value) else None
                )
            else:
                node = node.get(name)
        return None if node is None or not names else (node, target)


# A config is composed anew for every command that starts from it.
@lru_cache(maxsize=4096)
def _parts(text: str) -> list[str | tuple[str]] | None:
    """Return text, and one-tuples with the inside of a `${...}`, in order; None if one is not closed."""
    parts: list[str | tuple[str]] = []
    depth = begin = last = at = 0
    while at < len(text):
        if depth == 0 and text.startswith("\\${", at):
            parts.append(text[last:at] + "${")
            last = at = at + 3
        elif text.startswith("${", at):
            if depth == 0:
                if at > last:
                    parts.append(text[last:at])
                begin = at + 2
            depth += 1
            at += 2
        elif text[at] == "}" and depth:
            depth -= 1
            at += 1
            if depth == 0:
                parts.append((text[begin : at - 1],))
                last = at
        elif depth and text[at] == "{":
            depth += 1
            at += 1
        else:
            at += 1
    if depth or not parts:
        return None
    if last < len(text):
        parts.append(text[last:])
    return parts


def _literal(text: str) -> Any:
    """Return a resolver's argument as OmegaConf's grammar reads it: number, boolean, null, quoted or bare string."""
    return Unknown("its default is not a plain value") if text[:1] in {"[", "{", "$"} else typed_by_hydra(text)


def _of_environment(default: Any) -> Any:
    """Return a variable's default. It arrives as text, in which most frameworks read a number, but not all a switch."""
    switch = f"{{oc.env:...}} gives the text {default}, which counts as true unless it is read as a switch"
    return Unknown(f"${switch}") if isinstance(default, bool) else default


def _worked_out(name: str, arguments: Sequence[Any]) -> Any:
    """Return the value of one of a project's resolvers; Unknown if it does not take one of the arguments."""
    unknown = next((argument for argument in arguments if isinstance(argument, Unknown)), None)
    if unknown is not None:
        return unknown
    if name == "not":
        is_switch = len(arguments) == 1 and (arguments[0] is None or isinstance(arguments[0], bool | int))
        return not arguments[0] if is_switch else Unknown("${not:...} of what is no switch")
    are_numbers = all(isinstance(number, int | float) and not isinstance(number, bool) for number in arguments)
    if not arguments or not are_numbers:
        return Unknown(f"${{{name}:...}} needs numbers")
    try:
        return _OF_NUMBERS[name](arguments)
    except (ZeroDivisionError, OverflowError):
        return Unknown(f"${{{name}:...}} cannot be computed from these numbers")
