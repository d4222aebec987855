"""Names by which a Python file calls classes: `engine_cls = AsyncEngineArgs if serves else EngineArgs`.

A name counts where everything that the file assigns to it is a class, by the spelling of its name; one that is also a
parameter, or the variable of a loop, does not.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache

_DEEPEST = 6  # modules in front of a class
_IN_CAPITALS = {"LLM"}  # no constant, whatever its spelling


@lru_cache(maxsize=64)
def class_aliases(tree: ast.Module) -> dict[str, tuple[ast.expr, ...]]:
    """Name -> the classes that it may stand for, in the order of the file."""
    told: dict[str, list[ast.expr]] = {}
    assigned: dict[str, int] = {}
    bound: dict[str, int] = {}
    for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            classes = list(_classes(node.value))
            if classes and all(map(_is_class, classes)):
                told.setdefault(name, []).extend(classes)
                assigned[name] = assigned.get(name, 0) + 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = bound.get(node.id, 0) + 1
        elif isinstance(node, ast.arg):
            bound[node.arg] = bound.get(node.arg, 0) + 1
    return {name: tuple(classes) for name, classes in told.items() if bound.get(name) == assigned[name]}


def _classes(value: ast.expr) -> Iterator[ast.expr]:
    """What an expression may be: both sides of `a if test else b`."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.IfExp):
            waiting += [one.orelse, one.body]
        else:
            yield one


def _is_class(value: ast.expr) -> bool:
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    for _ in range(_DEEPEST):
        value = value.value if isinstance(value, ast.Attribute) else value
    return isinstance(value, ast.Name) and name[:1].isupper() and (not name.isupper() or name in _IN_CAPITALS)
