"""Lines of a Python program by which new weights do not reach a V1 engine that runs in a process of its own.

Two of V0's ways fail then: `llm.llm_engine.model_executor` is an attribute in the engine's own process, and vLLM no
longer sends a function or `torch.dtype` as an argument of `collective_rpc` since 0.9.0 (vllm/v1/serial_utils.py). A
line below a test for the attribute or for vLLM's version is left alone, and so is one whose error the program handles.
"""

import ast
import re
from collections.abc import Iterator

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.python_text import parse, span
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.settings.rollout_config import LostUpdate

_EXECUTOR = "model_executor"
_SENDS = ("collective_rpc", "apply_model")
_DTYPES = {"float32", "float", "float16", "half", "bfloat16", "float8_e4m3fn", "float8_e5m2"}
# Names of an engine in programs: `llm`, `self.llm_engine`, `engine`; `vllm.model_executor` is a module.
AN_ENGINE = re.compile(r"engine|(?<!v)llm", re.IGNORECASE)
_ASKS_FIRST = re.compile(r"hasattr|version|VLLM_USE_V1", re.IGNORECASE)
# Calls in an `except` that goes on as if nothing had happened.
_REPORTS = {"print", "debug", "info", "warning", "warn", "error", "exception"}
_DEALT_WITH = -1
_LONGEST = 60


def lost_updates(source: Source) -> tuple[LostUpdate, ...]:
    """Return the lines of a Python file, in their order."""
    if source.suffix != ".py" or not any(word in source.text for word in (_EXECUTOR, *_SENDS)):
        return ()
    try:
        tree = parse(source.text)
    except UnreadableText as error:
        source.refuse("weight updates", error)
        return ()
    index = LineIndex(source.text, source.path)
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    updates = []
    for node, passed_over_at in _reached(tree):
        what, sends = _reaches_inside(node), False
        if not what:
            what, sends = _hands_over(node, functions), True
        if what:
            updates.append(LostUpdate(what, index.place(*span(node, source.text), what), sends, passed_over_at))
    return tuple(sorted(updates, key=lambda update: update.place.start))


def _reached(tree: ast.Module) -> Iterator[tuple[ast.expr, int]]:
    """Yield each expression whose error the program does not handle, with the line of the `except` that hides it, or 0.

    Iterative, so that nesting costs no stack.
    """
    todo: list[tuple[ast.AST, int]] = [(tree, 0)]
    while todo:
        node, passed_over_at = todo.pop()
        if isinstance(node, ast.expr):
            yield node, passed_over_at
        if isinstance(node, ast.If) and _ASKS_FIRST.search(ast.unparse(node.test)):
            continue
        caught = _caught(node.handlers) if isinstance(node, ast.Try) else None
        guarded = node.body if isinstance(node, ast.Try) and caught is not None else []
        if caught is not None and caught != _DEALT_WITH:
            todo += [(child, caught or passed_over_at) for child in guarded]
        todo += [(child, passed_over_at) for child in ast.iter_child_nodes(node) if child not in guarded]


def _caught(handlers: list[ast.ExceptHandler]) -> int | None:
    """Return the line of an `except` that catches the error and goes on, 0 if it raises again, _DEALT_WITH if it does
    anything else; None if no handler catches it.
    """
    for handler in handlers:
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        errors = {ast.unparse(error).rpartition(".")[2] for error in types if error is not None}
        if errors and errors.isdisjoint({"Exception", "BaseException", "AttributeError", "TypeError"}):
            continue
        if any(isinstance(node, ast.Raise) for line in handler.body for node in ast.walk(line)):
            return 0
        return handler.lineno if all(map(_goes_on, handler.body)) else _DEALT_WITH
    return None


def _goes_on(line: ast.stmt) -> bool:
    match line:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Return(value=None | ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _REPORTS
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _reaches_inside(node: ast.expr) -> str:
    """Return what the expression takes from inside the engine's process; "" if nothing."""
    if not (isinstance(node, ast.Attribute) and node.attr == _EXECUTOR and isinstance(node.ctx, ast.Load)):
        return ""
    owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
    return f"takes {_EXECUTOR} of {ast.unparse(node.value)}" if AN_ENGINE.search(owner) else ""


def _hands_over(node: ast.expr, functions: set[str]) -> str:
    """Return what a call hands over that vLLM does not send; "" if nothing."""
    if not isinstance(node, ast.Call) or _method(node.func) not in _SENDS:
        return ""
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    handed = [*node.args[:1], *(keywords[name] for name in ("method", "func") if name in keywords)]
    arguments = keywords.get("args", node.args[2] if len(node.args) > 2 else None)
    handed += arguments.elts if isinstance(arguments, ast.Tuple | ast.List) else []
    mapping = keywords.get("kwargs")
    handed += mapping.values if isinstance(mapping, ast.Dict) else []
    for value in handed:
        kind = _kind(value, functions)
        if kind:
            return f"hands {ast.unparse(value)[:_LONGEST]}, {kind}, to {_method(node.func)}"
    return ""


def _method(function: ast.expr) -> str:
    """Return the method that is called, also through Ray's `.remote`."""
    if isinstance(function, ast.Attribute) and function.attr == "remote":
        function = function.value
    return function.attr if isinstance(function, ast.Attribute) else ""


def _kind(value: ast.expr, functions: set[str]) -> str:
    match value:
        case ast.Lambda():
            return "a function"
        case ast.Name(id=name) if name in functions:
            return "a function"
        case ast.Attribute(attr="dtype"):
            return "a torch.dtype"
        case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in _DTYPES:
            return "a torch.dtype"
    return ""
