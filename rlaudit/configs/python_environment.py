"""Environment variables that a Python file sets itself: `os.environ["NAME"] = "value"`, `setdefault`, `putenv`."""

import ast
from collections.abc import Iterator

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_text import UnreadablePython, parse


def python_environment(source: Source, prefixes: tuple[str, ...]) -> dict[str, Node]:
    """Variables whose name begins with one of `prefixes`; the last assignment of a name, wherever it stands."""
    if source.suffix != ".py" or "environ" not in source.text:
        return {}
    try:
        tree = parse(source.text)
    except UnreadablePython as error:
        source.refuse("os.environ", error)
        return {}
    index = LineIndex(source.text, source.path)
    lines = source.text.split("\n")
    found: dict[str, Node] = {}
    for name, value in _assigned(tree):
        if name.startswith(prefixes):
            found[name] = _node(value, name, index, lines)
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


def _node(value: ast.expr, name: str, index: LineIndex, lines: list[str]) -> Node:
    """ast counts bytes within a line; places count characters."""
    first, last = value.lineno - 1, (value.end_lineno or value.lineno) - 1
    start = len(lines[first].encode()[: value.col_offset].decode(errors="ignore"))
    end = len(lines[last].encode()[: value.end_col_offset or 0].decode(errors="ignore"))
    place = index.place(index.starts[first] + start, index.starts[last] + end, name)
    text = _text(value)
    known = text if text is not None else Unknown(f"{ast.unparse(value)} is known only when it runs")
    return Node(known, place, place, ast.unparse(value))
