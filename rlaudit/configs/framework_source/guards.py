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
_ASKS = {"hasattr": frozenset({StopKind.ATTRIBUTE}), "find_spec": frozenset({StopKind.IMPORT})}
_FOR_CHECKERS = "TYPE_CHECKING"


def caught_by(error: ast.expr | None) -> frozenset[StopKind]:
    """The kinds of stops that `except error:` catches; all of them without an error."""
    if error is None:
        return _ANY
    named = error.elts if isinstance(error, ast.Tuple) else [error]
    return frozenset().union(*(_CATCHES.get(ast.unparse(one).rpartition(".")[2], frozenset()) for one in named))


def asked_by(test: ast.expr) -> frozenset[StopKind] | None:
    """The kinds of stops that a test is for: `hasattr(llm, "x")`; None for a branch that only type checkers take."""
    if ast.unparse(test).rpartition(".")[2] == _FOR_CHECKERS:
        return None
    called = (node.func for node in ast.walk(test) if isinstance(node, ast.Call))
    return frozenset().union(*(_ASKS.get(ast.unparse(one).rpartition(".")[2], frozenset()) for one in called))
