"""What a program is ready for when it asks vLLM for something that a release may not have."""

import ast

from rlaudit.configs.rollout_config import StopKind

_ANY = frozenset({StopKind.IMPORT, StopKind.ATTRIBUTE})
_CATCHES = {
    "ImportError": frozenset({StopKind.IMPORT}),
    "ModuleNotFoundError": frozenset({StopKind.IMPORT}),
    "AttributeError": frozenset({StopKind.ATTRIBUTE}),
    "Exception": _ANY,
    "BaseException": _ANY,
}
_EVERYTHING = {"Exception", "BaseException"}
_SAYS = {"print", "debug", "info", "warning", "warn", "error", "exception"}
_ASKS = {"hasattr": frozenset({StopKind.ATTRIBUTE}), "find_spec": frozenset({StopKind.IMPORT})}
_FOR_CHECKERS = "TYPE_CHECKING"


def caught_by(error: ast.expr | None) -> frozenset[StopKind]:
    """The kinds of stops that `except error:` catches; all of them without an error."""
    if error is None:
        return _ANY
    named = error.elts if isinstance(error, ast.Tuple) else [error]
    return frozenset().union(*(_CATCHES.get(ast.unparse(one).rpartition(".")[2], frozenset()) for one in named))


def passes_over(handlers: list[ast.ExceptHandler]) -> int | None:
    """The line of the `except` that takes a missing attribute like any other error and does nothing but say so: what
    the program meant to do is left out, and it goes on. 0 where it is dealt with, None where none catches it.
    """
    for handler in handlers:
        if StopKind.ATTRIBUTE in caught_by(handler.type):
            meant = handler.type is not None and ast.unparse(handler.type) not in _EVERYTHING
            return 0 if meant or not all(map(_is_idle, handler.body)) else handler.lineno
    return None


def asks_whether_taken(tree: ast.Module, name: str) -> bool:
    """Whether a test of the file is for a keyword: `if "name" in inspect.signature(EngineArgs).parameters`."""
    return any(isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.In) and isinstance(one.left, ast.Constant)
               and one.left.value == name
               for node in ast.walk(tree) if isinstance(node, ast.If) for one in ast.walk(node.test))  # fmt: skip


def _is_idle(line: ast.stmt) -> bool:
    match line:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Return(value=None | ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _SAYS
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def asked_by(test: ast.expr) -> frozenset[StopKind] | None:
    """The kinds of stops that a test is for: `hasattr(llm, "x")`; None for a branch that only type checkers take."""
    if ast.unparse(test).rpartition(".")[2] == _FOR_CHECKERS:
        return None
    called = (node.func for node in ast.walk(test) if isinstance(node, ast.Call))
    return frozenset().union(*(_ASKS.get(ast.unparse(one).rpartition(".")[2], frozenset()) for one in called))
