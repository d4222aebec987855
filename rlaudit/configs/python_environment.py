"""Environment variables that a Python file sets itself: `os.environ["NAME"] = "value"`, `setdefault`, `putenv`, and
vLLM's own `set_vllm_use_v1`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.python_values import PythonValues
from rlaudit.configs.syntax.python_walk import At, nodes_of
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.unknown import Unknown

# Of vllm.envs, up to 0.11.0: it writes VLLM_USE_V1.
_CHOICE, _CHOSEN = "set_vllm_use_v1", "VLLM_USE_V1"
_ENVIRONMENTS = ("os.environ", "environ")
_SETTERS = {*(f"{name}.setdefault" for name in _ENVIRONMENTS), "os.putenv"}
# Ways to set variables whose names are not read: `os.environ[name] = value` in a loop, and `os.environ.update(...)`.
_UNREAD = re.compile(r"""\benviron(?:\[(?!["'])[^\]\n]+\]\s*=(?!=)|\.update\()""")


def unread_variables_at(source: Source) -> set[int]:
    """Return the lines of a Python file that set variables whose names are not read."""
    matches = _UNREAD.finditer(source.text) if source.suffix == ".py" else ()
    return {source.text.count("\n", 0, match.start()) + 1 for match in matches}


def python_environment(source: Source, prefixes: tuple[str, ...] = ("",)) -> dict[str, Node]:
    """Return the variables whose name begins with one of `prefixes`; Unknown if a variable gets different values, or is
    set only in one branch of an `if`.
    """
    if source.suffix != ".py" or not any(word in source.text for word in ("environ", _CHOICE)):
        return {}
    try:
        values = PythonValues(source.text, source.path)
    except UnreadableText as error:
        source.refuse("os.environ", error)
        return {}
    variables: dict[str, Node] = {}
    for at in nodes_of(values.tree):
        for name, value in _set(at.node):
            if name.startswith(prefixes):
                node = _value_at(values.node(value, at, name), name, at)
                if name in variables and variables[name].value != node.value:
                    node = replace(node, value=Unknown(f"{name} is set more than once in this file"))
                variables[name] = node
    return variables


def _value_at(node: Node, name: str, at: At) -> Node:
    """Return the text that a variable gets; Unknown under a condition. `if "NAME" not in os.environ` gives a default,
    as `setdefault` does.
    """
    value: str | Unknown = Unknown(f"{node.text or name} is known only when it runs")
    if isinstance(node.value, str | int):
        value = str(int(node.value)) if isinstance(node.value, bool) else str(node.value)
    tests = [(branch.test, part) for branch, part in at.branches if isinstance(branch, ast.If)]
    if not isinstance(value, Unknown) and any(part != "body" or not _is_for_a_default(test) for test, part in tests):
        value = Unknown(f"{name} is set under a condition")
    return replace(node, value=value, key=node.place)


def _is_for_a_default(test: ast.expr) -> bool:
    """Return whether it is `"NAME" not in os.environ`, `not os.environ.get("NAME")`, `os.getenv("NAME") is None`."""
    missing = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    missing |= isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn | ast.Is)
    return missing and any(word in ast.unparse(test) for word in ("environ", "getenv"))


def _set(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target:
                    case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))):
                        if ast.unparse(owner) in _ENVIRONMENTS:
                            yield name, value
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), value]):
            if ast.unparse(function) in _SETTERS:
                yield name, value
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[value]) if name == _CHOICE:
            yield _CHOSEN, value
