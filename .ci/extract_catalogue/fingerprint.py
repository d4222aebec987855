"""A fingerprint of the code by which a release decides a value, so that a changed decision is noticed.

Only the statements that mention the value count, with the conditions around them: the functions themselves change with
every release. Docstrings, logging and layout do not count, nor does the Python that parses the release.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator

from extract_catalogue.modules import Module, Tree
from rlaudit.vllm.resolve import Function

_SPEECH = ("logger.", "warnings.", "print", "log_once")
_NOT_MEANING = {"ctx", "kind", "type_comment", "type_params", "type_ignores"}
SHORT = 12


def fingerprint(tree: Tree, functions: Iterable[Function]) -> tuple[str, list[str]]:
    """The fingerprint over all of the functions that this release has, and where each one decides.

    First the first line of each one's decision, then, as `path:line=value`, what is assigned where, as far as it is
    written there. The fingerprint is empty when the release has none of them.
    """
    text, lines, assigned = [], [], []
    for function in functions:
        module = tree.module(function.path)
        body = _body(tree, module, function.name) if module is not None else None
        if body is None:
            continue
        kept = _kept(body, function.words)
        if kept:
            text.append(function.name + "".join(map(_canonical, kept)))
            lines.append(f"{function.path}:{_line(kept, function.words)}")
            assigned += [f"{function.path}:{line}={value}" for line, value in _assigned(kept, function.words)]
    if not text:
        return "", []
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:SHORT], [*lines, *dict.fromkeys(assigned)]


def decision(tree: Tree, functions: Iterable[Function]) -> str:
    """The same statements as source, for whoever reviews a change."""
    parts = []
    for function in functions:
        module = tree.module(function.path)
        body = _body(tree, module, function.name) if module is not None else None
        kept = _kept(body, function.words) if body is not None else []
        if kept:
            parts.append(f"# {function.path}: {function.name}\n" + "\n".join(map(ast.unparse, kept)))
    return "\n\n".join(parts)


def _body(tree: Tree, module: Module, name: str) -> list[ast.stmt] | None:
    """The statements of `function`, `Class.method`, or, as `Class`, of a class; a bound name's own statement."""
    head, _, method = name.partition(".")
    definition = module.bound.get(head)
    if method:
        found = tree.method(method, module, definition) if isinstance(definition, ast.ClassDef) else None
        return found[1].body if found is not None else None
    if isinstance(definition, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return definition.body
    return [ast.copy_location(ast.Expr(definition), definition)] if isinstance(definition, ast.expr) else None


def _kept(body: list[ast.stmt], words: tuple[str, ...]) -> list[ast.stmt]:
    return list(_keep(body, words))


def _keep(body: list[ast.stmt], words: tuple[str, ...]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _is_speech(node.value)):
            continue
        if isinstance(node, ast.If):
            whole = _mentions(node.test, words)
            inner = () if whole else words
            then, orelse = list(_keep(node.body, inner)), list(_keep(node.orelse, inner))
            if then or orelse or (whole and not words):
                made = ast.If(node.test, then or [ast.Pass()], orelse)
                yield ast.copy_location(made, node)
        elif isinstance(node, ast.With | ast.For | ast.Try):
            inner_body = list(_keep(node.body, words))
            if inner_body or _mentions(node, words):
                yield from inner_body or [node]
        elif isinstance(node, ast.Raise) and node.exc is not None and _mentions(node, words):
            yield ast.copy_location(ast.Raise(), node)  # its wording is no decision
        elif _mentions(node, words) and not _hands_on(node, words):
            yield node


def _mentions(node: ast.AST, words: tuple[str, ...]) -> bool:
    if not words:
        return True
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)) if name in words:
                return True
            case ast.Constant(value=str(name)) if name in words:
                return True
    return False


def _hands_on(node: ast.stmt, words: tuple[str, ...]) -> bool:
    """Whether a statement only passes the value on: `x = SchedulerConfig(policy=self.policy, ...)`."""
    if not words or not isinstance(node, ast.Assign | ast.Expr):
        return False
    value, targets = node.value, node.targets if isinstance(node, ast.Assign) else []
    return isinstance(value, ast.Call) and bool(value.keywords) and not any(_mentions(t, words) for t in targets)


def _is_speech(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith(_SPEECH)


def _canonical(node: object) -> str:
    if isinstance(node, ast.AST):
        parts = [
            f"{name}={_canonical(value)}"
            for name, value in ast.iter_fields(node)
            if name not in _NOT_MEANING and value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    return repr(node)


def _line(kept: list[ast.stmt], words: tuple[str, ...]) -> int:
    """The first assignment to one of the words, else the first mention, else the first statement but imports."""
    nodes = [node for statement in kept for node in ast.walk(statement) if hasattr(node, "lineno")]
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(_mentions(target, words) for target in targets) and words:
            return int(node.lineno)
    mentioned = [node.lineno for node in nodes if words and not isinstance(node, ast.stmt) and _mentions(node, words)]
    doing = [statement for statement in kept if not isinstance(statement, ast.Import | ast.ImportFrom)]
    return int(min(mentioned)) if mentioned else (doing or kept)[0].lineno


def _assigned(kept: list[ast.stmt], words: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The values that the statements give to the words, each with its line: what is written, and nothing computed."""
    for node in (node for statement in kept for node in ast.walk(statement)):
        match node:
            case ast.Assign(targets=targets, value=value) if any(_mentions(target, words) for target in targets):
                yield from _written(value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _mentions(target, words):
                yield from _written(value)
            case ast.Return(value=ast.expr() as value) if not words:
                yield from _written(value)
            case ast.Dict(keys=keys, values=values) if words:
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and key.value in words:
                        yield from _written(value)


def _written(value: ast.expr) -> Iterator[tuple[int, str]]:
    match value:
        case ast.Constant(value=bool() | int() | str() as constant) if str(constant).replace("_", "").isalnum():
            yield value.lineno, str(constant)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == "torch" or owner[0].isupper():
            yield value.lineno, name
        case ast.Dict(values=values):
            for inner in values:
                yield from _written(inner)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _written(body)
            yield from _written(orelse)
