"""What one Python file binds names to: engine arguments on their way to vLLM, defaults of options, calls.

An engine argument is handed over as a keyword of a call, a key of a dictionary, or by a store (`args["name"] = ...`,
`namespace.name = ...`, `setattr(namespace, "name", ...)`). A block, a call or a dictionary with several engine
arguments, tells that the file builds an engine, and which arguments it leaves to vLLM.
"""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.unreadable import UnreadableText

FEWEST_OF_A_BLOCK = 4


@dataclass(frozen=True)
class Bound:
    """One name and the expression it is bound to. sure: in a block, not in a branch. where: `file:line`."""

    name: str
    value: ast.expr
    where: str
    sure: bool

    @property
    def constant(self) -> Any:
        """The literal, else Unknown."""
        return literal(self.value)

    @property
    def otherwise(self) -> Any:
        """The literal that is taken where nothing is written: of `config.get("x", literal)`; else Unknown."""
        node = self.value
        has = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
        return literal(node.args[1] if has and len(node.args) > 1 else None)  # type: ignore[attr-defined]

    @property
    def option(self) -> str:
        """The option that is handed on: `self.args.x`, `config["x"]`, `config.get("x", ...)`, `x`; "" for others."""
        node = self.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            return _text(node.args[0]) if node.args else ""
        if isinstance(node, ast.Subscript):
            return _text(node.slice)
        if isinstance(node, ast.Attribute):
            return node.attr
        return node.id if isinstance(node, ast.Name) else ""


@dataclass(frozen=True)
class Handed:
    """The engine arguments that a file hands over. blocks: `file:line` of each block. open: a block takes `**more`."""

    arguments: dict[str, tuple[Bound, ...]]
    blocks: tuple[str, ...]


@lru_cache(maxsize=64)
def handed_over(source: Source, names: frozenset[str]) -> Handed:
    """The engine arguments (of `names`) in a file; no block where it builds no engine."""
    blocks: list[str] = []
    sure: dict[str, tuple[Bound, ...]] = {}
    stored: dict[str, tuple[Bound, ...]] = {}
    for node in _nodes(source):
        pairs = [(name, value) for name, value in _pairs(node) if name in names]
        if len(pairs) >= FEWEST_OF_A_BLOCK:
            blocks.append(place(source, node))
            for name, value in pairs:
                sure[name] = (*sure.get(name, ()), Bound(name, value, place(source, value), True))
        elif isinstance(node, ast.Dict | ast.Assign | ast.Call):
            for name, value in pairs or _stores(node, names):
                if "_" in name:
                    stored[name] = (*stored.get(name, ()), Bound(name, value, place(source, value), False))
    return Handed({**stored, **sure}, tuple(blocks))


def defaults_in(source: Source, owner: str = "") -> dict[str, Bound]:
    """Defaults of options: fields of classes (of `owner` alone where it is given), and arguments of a parser."""
    found: dict[str, Bound] = {}
    for node in _nodes(source):
        if isinstance(node, ast.ClassDef) and (not owner or node.name == owner):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                    value = _field_default(line.value)
                    if value is not None:
                        name = line.target.id
                        found.setdefault(name, Bound(name, value, place(source, line), True))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            flag = next((text for text in map(_text, node.args) if text.startswith("--")), "")
            value = _argument_default(node)
            if flag and value is not None and not owner:
                name = flag.removeprefix("--").replace("-", "_")
                found.setdefault(name, Bound(name, value, place(source, node), True))
    return found


def parameters_of(source: Source, owner: str, function: str) -> dict[str, Bound]:
    """What a method of a class can be called with by name, each with its default; None where it has none."""
    for node in _nodes(source):
        if isinstance(node, ast.ClassDef) and node.name == owner:
            for line in node.body:
                if isinstance(line, ast.FunctionDef) and line.name == function:
                    return dict(_parameters(source, line.args))
    return {}


def calls_in(source: Source, names: Collection[str]) -> tuple[ast.Call, ...]:
    """Every call of a function, method or class of one of the names."""
    return tuple(node for node in _nodes(source) if isinstance(node, ast.Call) and _called(node.func) in names)


def nodes_in(source: Source) -> tuple[ast.AST, ...]:
    """Everything in the file, in the order of its lines; nothing where it is no Python."""
    return _nodes(source)


def place(source: Source, node: ast.AST) -> str:
    """`file:line` of a node."""
    return f"{shown(source.path)}:{getattr(node, 'lineno', 1)}"


def literal(value: ast.expr | None) -> Any:
    """The constant, list or mapping that an expression is, else Unknown."""
    try:
        return ast.literal_eval(value) if value is not None else Unknown("nothing is said")
    except (ValueError, TypeError, RecursionError, MemoryError):
        return Unknown(f"{ast.unparse(value)[:60]} is known only when it runs" if value is not None else "")


@lru_cache(maxsize=64)
def _nodes(source: Source) -> tuple[ast.AST, ...]:
    try:
        tree = parse(source.text)
    except UnreadableText:
        return ()
    return tuple(sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)))


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None and (name := _text(key)):
                yield name, value
    elif isinstance(node, ast.Call):
        yield from ((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg is not None)


def _stores(node: ast.AST, names: frozenset[str]) -> Iterator[tuple[str, ast.expr]]:
    if (
        isinstance(node, ast.Call)
        and _called(node.func).endswith("setattr")
        and len(node.args) == len(("x", "name", 1))
    ):
        if (name := _text(node.args[1])) in names:
            yield name, node.args[2]
        return
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        name = _text(target.slice) if isinstance(target, ast.Subscript) else getattr(target, "attr", "")
        if name in names and not _is_self(target):
            yield name, node.value


def _parameters(source: Source, given: ast.arguments) -> Iterator[tuple[str, Bound]]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults, *given.kw_defaults]
    for one, default in zip([*plain, *given.kwonlyargs], defaults, strict=True):
        value = default or ast.Constant(None)
        yield one.arg, Bound(one.arg, value, place(source, one), True)


def _is_self(target: ast.expr) -> bool:
    """`self.name = ...` keeps a value, and hands nothing over."""
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"


def _field_default(value: ast.expr) -> ast.expr | None:
    """The default of a dataclass or pydantic field, None where it is made by a call."""
    if not isinstance(value, ast.Call):
        return value
    if _called(value.func) not in {"field", "Field"}:
        return None
    named = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    return named or (value.args[0] if value.args and _called(value.func) == "Field" else None)


def _argument_default(call: ast.Call) -> ast.expr | None:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    action = _text(named["action"]) if "action" in named else ""
    if "default" in named:
        return named["default"]
    return ast.Constant(action == "store_false") if action.startswith("store_") else ast.Constant(None)


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
