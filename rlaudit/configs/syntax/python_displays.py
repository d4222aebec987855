"""Lists, tuples and dictionaries that stand in Python source, found by what they hold."""

import ast
from collections.abc import Callable, Iterator

from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.python_literals import literal_texts
from rlaudit.configs.syntax.python_program import Around
from rlaudit.configs.syntax.python_values import DEEPEST, PythonValues


def displays(text: str, path: str, wanted: Callable[[str], bool]) -> tuple[Node, ...]:
    """Every list and tuple that holds a text which is wanted, starred lists that the file tells filled in.

    Raises UnreadableText.
    """
    values = PythonValues(text, path)
    found: list[Node] = []
    for node, around in _nodes(values.tree):
        if isinstance(node, ast.List | ast.Tuple) and any(wanted(text) for text in literal_texts(node)):
            elements: list[Node] = []
            for one in node.elts:
                inner = one.value if isinstance(one, ast.Starred) else one
                element = values.node(inner, values.scope(around), "", None, 0)
                elements += element.value if inner is not one and isinstance(element.value, tuple) else (element,)
            found.append(Node(tuple(elements), values.text.place(node, "")))
    return tuple(found)


def dictionaries(text: str, path: str, key: str) -> tuple[Node, ...]:
    """Every dictionary display that has a key, the outermost first. Raises UnreadableText."""
    values = PythonValues(text, path)
    found = [
        (node, around) for node, around in _nodes(values.tree)
        if isinstance(node, ast.Dict) and any(isinstance(one, ast.Constant) and one.value == key for one in node.keys)
    ]  # fmt: skip
    return tuple(values.node(node, values.scope(around), "", None, 0) for node, around in found)


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, Around]]:
    """All of the tree with the functions around it; iterative, so that nesting costs no stack."""
    todo: list[tuple[ast.AST, Around]] = [(tree, ())]
    while todo:
        node, functions = todo.pop()
        yield node, functions
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions = (*functions[-DEEPEST:], node)
        todo += [(child, functions) for child in ast.iter_child_nodes(node)]
