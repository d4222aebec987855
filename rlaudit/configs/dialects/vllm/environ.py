"""Variables that a Python file sets for the process: `os.environ["X"] = "1"`, `os.environ.setdefault("X", "1")`."""

import ast

from rlaudit.configs.dialects.vllm.flags import take_variables
from rlaudit.configs.draft import Draft
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_text import parse, span


def environment_of(draft: Draft, source: Source) -> None:
    """Put them in the draft; one that is set more than once, or not to a literal, is Unknown. Raises ValueError."""
    if "environ" not in source.text:
        return
    index = LineIndex(source.text, source.path)
    found: dict[str, Node] = {}
    for name, value in _assignments(parse(source.text)):
        place = index.place(*span(value, source.text), name)
        literal = value.value if isinstance(value, ast.Constant) else None
        known = str(literal) if isinstance(literal, str | int) else Unknown(f"{name} is set to what only a run tells")
        if name in found and found[name].value != known:
            known = Unknown(f"{name} is set more than once in this file")
        found[name] = Node(known, place, None, source.text[place.start : place.end])
    take_variables(draft, found)


def _assignments(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    pairs: list[tuple[str, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            pairs += [(_key(target), node.value) for target in node.targets]
        elif isinstance(node, ast.Call) and _is_default(node.func) and len(node.args) == 2:
            name = node.args[0]
            pairs.append((str(name.value) if isinstance(name, ast.Constant) else "", node.args[1]))
    return [(name, value) for name, value in pairs if name]


def _key(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript) and _is_environ(target.value) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return ""


def _is_default(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == "setdefault" and _is_environ(function.value)


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )
