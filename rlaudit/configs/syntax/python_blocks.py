"""What a name was assigned just before it is used: in the same block, and in between it gets keys at most."""

import ast
from collections.abc import Iterator


def just_assigned(root: ast.AST, use: ast.Name) -> ast.expr | None:
    """The value that `name = value` gives a name shortly before its one use; None where anything else may change it."""
    for block in _blocks(root):
        at = next((n for n, one in enumerate(block) if _holds(one, use)), None)
        if at is None or not isinstance(block[at], ast.Assign | ast.AnnAssign | ast.Expr | ast.Return):
            continue
        if len(_mentions(block[at], use.id)) > 1:
            return None
        for earlier in reversed(block[:at]):
            if isinstance(earlier, ast.Assign) and [getattr(one, "id", "") for one in earlier.targets] == [use.id]:
                return earlier.value
            if not _sets_keys(earlier, use.id):
                return None
    return None


def _blocks(root: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(root):
        for part in ("body", "orelse", "finalbody"):
            block = getattr(node, part, None)
            if isinstance(block, list):
                yield block


def _holds(statement: ast.stmt, use: ast.Name) -> bool:
    return statement.lineno <= use.lineno <= (statement.end_lineno or 0) and use in _mentions(statement, use.id)


def _sets_keys(statement: ast.stmt, name: str) -> bool:
    """Whether every mention of a name in a statement is a key that it gets: `kwargs["key"] = value`."""
    keyed = [one for one in ast.walk(statement) if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)
             and isinstance(one.value, ast.Name) and one.value.id == name]  # fmt: skip
    return len(_mentions(statement, name)) == len(keyed)


def _mentions(statement: ast.stmt, name: str) -> list[ast.Name]:
    return [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name]
