"""The nodes of a Python file in the order of its lines, each with the functions, the class and the branches around."""

import ast
from dataclasses import dataclass
from functools import lru_cache

# The most functions, and branches, that are kept of those around a node.
DEEPEST = 60
Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAIN_GUARDS = {"__name__ == '__main__'", "'__main__' == __name__"}
_BRANCHES = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match


@dataclass(frozen=True, eq=False)
class At:
    """A node with the functions, the class and the branches around it."""

    node: ast.AST
    # The functions, the innermost last.
    functions: tuple[Function, ...] = ()
    # The innermost class, "" outside of any.
    owner: str = ""
    # The statements of the innermost function whose body may not run, each with the part around the node.
    branches: tuple[tuple[ast.AST, str], ...] = ()


@lru_cache(maxsize=8)
def nodes_of(tree: ast.Module) -> tuple[At, ...]:
    """Return all nodes of a tree; iterative, so that nesting costs no stack."""
    nodes: list[At] = []
    todo = [At(tree)]
    while todo:
        at = todo.pop()
        nodes.append(at)
        node, functions, owner, branches = at.node, at.functions, at.owner, at.branches
        if isinstance(node, Function):
            functions, branches = (*functions[-DEEPEST:], node), ()
        elif isinstance(node, ast.ClassDef):
            owner = node.name
        branching = isinstance(node, _BRANCHES) and not is_main_guard(node)
        children: list[At] = []
        for field, value in ast.iter_fields(node):
            inside = (*branches[-DEEPEST:], (node, field)) if branching else branches
            listed = value if isinstance(value, list) else (value,)
            children += (At(child, functions, owner, inside) for child in listed if isinstance(child, ast.AST))
        todo += reversed(children)
    return tuple(nodes)


def is_main_guard(node: ast.AST) -> bool:
    """Return whether it is `if __name__ == "__main__":`, which is true if the file is the program."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in _MAIN_GUARDS
