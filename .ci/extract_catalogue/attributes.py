"""What objects of vLLM have: methods, properties and attributes, of a class and its bases."""

import ast
from collections.abc import Iterator

from extract_catalogue.modules import Module, Tree

# Marks of a name that an object has under a condition only, and of an object that answers to any name.
SOMETIMES, ANYTHING = "?", "*"


def attributes(tree: Tree, module: Module, cls: ast.ClassDef) -> Iterator[str]:
    """Yield what a class and its bases have: methods, fields, and what methods set of `self`."""
    for home, base in tree.bases(module, cls):
        yield from attributes(tree, home, base)
    for node in cls.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (ANYTHING,) if node.name == "__getattr__" else _public(node.name)
            yield from _set(node.body, always=True)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _public(getattr(target, "id", "_"))


def _set(body: list[ast.stmt], *, always: bool) -> Iterator[str]:
    """What a method sets of `self`; in both branches is always."""
    for node in body:
        match node:
            case ast.Assign() | ast.AnnAssign():
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for one in ast.walk(target):
                        if (
                            isinstance(one, ast.Attribute)
                            and isinstance(one.value, ast.Name)
                            and one.value.id == "self"
                        ):
                            yield from (name if always else SOMETIMES + name for name in _public(one.attr))
            case ast.If():
                then, other = (set(_set(part, always=always)) for part in (node.body, node.orelse))
                yield from then & other
                for name in then ^ other:
                    yield name if name.startswith(SOMETIMES) else SOMETIMES + name
            case _:
                for part in ("body", "orelse", "finalbody"):
                    yield from _set(getattr(node, part, []), always=always)


def _public(name: str) -> Iterator[str]:
    if not name.startswith("_"):
        yield name
