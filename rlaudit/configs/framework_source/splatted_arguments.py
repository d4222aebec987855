"""Arguments that reach the engine in a dictionary which the file fills: `kwargs["name"] = ...; LLM(**kwargs)`."""

import ast
from collections.abc import Collection, Iterator


def splatted(tree: ast.Module, engines: Collection[str]) -> frozenset[str]:
    """The dictionaries, as they are written, that a file splats into a call of its engine classes."""
    if not engines:
        return frozenset()
    return frozenset(
        ast.unparse(keyword.value)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in engines
        for keyword in call.keywords
        if keyword.arg is None and isinstance(keyword.value, ast.Name | ast.Attribute)
    )


def put_into(line: ast.AST, dictionaries: Collection[str]) -> Iterator[tuple[ast.AST, str]]:
    """The keys that an assignment gives one of the dictionaries, each with its node."""
    if not isinstance(line, ast.Assign | ast.AnnAssign):
        return
    for target in line.targets if isinstance(line, ast.Assign) else [line.target]:
        if isinstance(target, ast.Subscript) and ast.unparse(target.value) in dictionaries:
            if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
                yield target, target.slice.value
        elif isinstance(target, ast.Name | ast.Attribute) and ast.unparse(target) in dictionaries:
            yield from _literal(line.value)


def _literal(value: ast.expr | None) -> Iterator[tuple[ast.AST, str]]:
    """The keys of `{"name": ...}` and `dict(name=...)`."""
    if isinstance(value, ast.Dict):
        yield from (
            (key, key.value) for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
        )
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        yield from ((keyword, keyword.arg) for keyword in value.keywords if keyword.arg is not None)
