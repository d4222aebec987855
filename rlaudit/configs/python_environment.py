"""Environment variables that a Python file sets itself: `os.environ["NAME"] = "value"`, `setdefault`, `putenv`."""

import ast
from collections.abc import Iterator

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_text import UnreadablePython, parse, span


def python_environment(source: Source, prefixes: tuple[str, ...] = ("",)) -> dict[str, Node]:
    """Variables whose name begins with one of `prefixes`; one that gets different values is Unknown."""
    if source.suffix != ".py" or "environ" not in source.text:
        return {}
    try:
        tree = parse(source.text)
    except UnreadablePython as error:
        source.refuse("os.environ", error)
        return {}
    index = LineIndex(source.text, source.path)
    found: dict[str, Node] = {}
    for name, value in _assigned(tree):
        if name.startswith(prefixes):
            place = index.place(*span(value, source.text), name)
            known = _known(value)
            if name in found and found[name].value != known:
                known = Unknown(f"{name} is set more than once in this file")
            found[name] = Node(known, place, place, source.text[place.start : place.end])
    return found


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _is_environ(target.value):
                    name = _text(target.slice)
                    if name is not None:
                        yield name, node.value
        elif isinstance(node, ast.Call) and len(node.args) == 2:
            function = ast.unparse(node.func)
            name = _text(node.args[0])
            if name is not None and function in {"os.environ.setdefault", "environ.setdefault", "os.putenv"}:
                yield name, node.args[1]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"os.environ.update", "environ.update"}:
            for part in node.args:
                if isinstance(part, ast.Dict):
                    for key, value in zip(part.keys, part.values, strict=True):
                        name = _text(key) if key is not None else None
                        if name is not None:
                            yield name, value


def _is_environ(node: ast.expr) -> bool:
    return ast.unparse(node) in {"os.environ", "environ"}


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _known(value: ast.expr) -> str | Unknown:
    literal = value.value if isinstance(value, ast.Constant) else None
    if isinstance(literal, str | int):
        return str(literal)
    return Unknown(f"{ast.unparse(value)} is known only when it runs")
