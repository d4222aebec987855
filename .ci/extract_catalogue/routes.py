"""HTTP routes of a release's API server, and the variable without which a route does not exist."""

import ast
from collections.abc import Iterator

from extract_catalogue.modules import Module, Tree

GATE = "VLLM_SERVER_DEV_MODE"
DEEPEST = 4
_METHODS = {"get", "post", "put", "delete", "websocket"}


def routes(tree: Tree) -> dict[str, str]:
    """Each route -> the variable that must be set for it, or "".

    Three ways of gating are known: the handler inside an `if` on the variable (until 0.11), a router that returns
    early without it (until 0.22), and a router that is only imported under it (later).
    """
    modules = [tree.module(path) for path in sorted(tree.paths) if path.startswith("vllm/entrypoints/")]
    known = [module for module in modules if module is not None]
    gated_files = {path for module in known for path in _imported_under_gate(tree, module)}
    found: dict[str, str] = {}
    for module in known:
        whole = module.path in gated_files or any(
            isinstance(node, ast.If) and GATE in ast.unparse(node.test) and isinstance(node.test, ast.UnaryOp)
            for node in ast.walk(module.tree)
        )
        for route, gated in _routes(module.tree.body, whole):
            found[route] = "" if found.get(route) == "" else GATE if gated else ""
    return dict(sorted(found.items()))


def _routes(body: list[ast.stmt], gated: bool) -> Iterator[tuple[str, bool]]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _routes(node.body, gated or GATE in ast.unparse(node.test))
            yield from _routes(node.orelse, gated)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if (
                    isinstance(decorator, ast.Call)
                    and isinstance(decorator.func, ast.Attribute)
                    and decorator.func.attr in _METHODS
                    and decorator.args
                    and isinstance(decorator.args[0], ast.Constant)
                ):
                    yield str(decorator.args[0].value), gated
            yield from _routes(node.body, gated)


def _imported_under_gate(tree: Tree, module: Module) -> Iterator[str]:
    """Files whose functions are imported inside `if VLLM_SERVER_DEV_MODE:`, and what those functions import."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Attribute) and GATE in ast.unparse(node.test):
            yield from _files(tree, module, node.body, depth=0)


def _files(tree: Tree, module: Module, body: list[ast.stmt], depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        return
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origin = ("." * node.level + (node.module or ""), alias.name)
                found = tree.find(alias.name, Module(module.path, module.tree, {}, {alias.name: origin}))
                if found is not None:
                    yield found[0].path
                if found is not None and isinstance(found[1], ast.FunctionDef):
                    yield from _files(tree, found[0], found[1].body, depth + 1)
