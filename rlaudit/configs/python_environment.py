"""Environment variables that a Python file sets itself: `os.environ["NAME"] = "value"`, `setdefault`, `putenv`, and
vLLM's own `set_vllm_use_v1`.
"""

import ast
from collections.abc import Collection, Iterator

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_text import parse, span
from rlaudit.configs.syntax.python_walk import is_main_guard
from rlaudit.configs.syntax.unreadable import UnreadableText

# Of vllm.envs, up to 0.11.0: it writes VLLM_USE_V1.
_CHOICE = "set_vllm_use_v1"


def python_environment(
    source: Source, prefixes: tuple[str, ...] = ("",), *, handed_on: bool = False
) -> dict[str, Node]:
    """Variables whose name begins with one of `prefixes`; one that gets different values, or is set in one branch of an
    `if` only, is Unknown.

    handed_on: also those of a copy of the environment, which only a process that is started with it sees.
    """
    if source.suffix != ".py" or not any(word in source.text for word in ("environ", _CHOICE)):
        return {}
    try:
        tree = parse(source.text)
    except UnreadableText as error:
        source.refuse("os.environ", error)
        return {}
    index = LineIndex(source.text, source.path)
    found: dict[str, Node] = {}
    copies = _copies(tree) if handed_on else set()
    maybe = _under_conditions(tree)
    for name, value in (*_assigned(tree, copies), *_chosen(tree), *(_built(tree) if handed_on else ())):
        if name.startswith(prefixes):
            place = index.place(*span(value, source.text), name)
            known: str | Unknown = _known(_default_of(name, value) or value)
            if id(value) in maybe and not isinstance(known, Unknown):
                known = Unknown(f"{name} is set under a condition")
            if name in found and found[name].value != known:
                known = Unknown(f"{name} is set more than once in this file")
            found[name] = Node(known, place, place, source.text[place.start : place.end])
    return found


def _under_conditions(tree: ast.Module) -> set[int]:
    """The ids of the nodes that an `if` may pass over. `if "NAME" not in os.environ` gives a default, as `setdefault`
    does, and `if __name__ == "__main__"` is the program itself.
    """
    return {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        for branch in (
            (node.orelse,) if is_main_guard(node) or _gives_a_default(node.test) else (node.body, node.orelse)
        )
        for line in branch
        for inner in ast.walk(line)
    }


def _gives_a_default(test: ast.expr) -> bool:
    """`"NAME" not in os.environ`, `not os.environ.get("NAME")`, `os.getenv("NAME") is None`."""
    missing = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    missing |= isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn | ast.Is)
    asked = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(test)}
    return missing and bool(asked & {"environ", "getenv"})


def _copies(tree: ast.Module) -> set[str]:
    """Names that are assigned a copy of the environment."""
    return {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _holds_environ(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _holds_environ(value: ast.expr) -> bool:
    """`os.environ.copy()`, `dict(os.environ, ...)`, `{**os.environ, ...}`."""
    if isinstance(value, ast.Dict):
        return any(key is None and _is_environ(inner) for key, inner in zip(value.keys, value.values, strict=True))
    if not isinstance(value, ast.Call):
        return False
    copies = isinstance(value.func, ast.Attribute) and value.func.attr == "copy" and _is_environ(value.func.value)
    return copies or any(_is_environ(argument) for argument in value.args)


def _built(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Variables that are put into a copy where it is made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and _holds_environ(node):
            pairs = zip(node.keys, node.values, strict=True)
            yield from ((name, value) for key, value in pairs if key is not None and (name := _text(key)) is not None)
        elif isinstance(node, ast.Call) and _holds_environ(node):
            yield from ((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg is not None)


def _assigned(tree: ast.Module, copies: set[str]) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _is_environ(target.value, copies):
                    name = _text(target.slice)
                    if name is not None:
                        yield name, node.value
        elif isinstance(node, ast.Call) and len(node.args) == 2:
            function = ast.unparse(node.func)
            name = _text(node.args[0])
            if name is not None and function in {"os.environ.setdefault", "environ.setdefault", "os.putenv"}:
                yield name, node.args[1]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"os.environ.update", "environ.update"}:
            for part in node.args:
                if isinstance(part, ast.Dict):
                    for key, value in zip(part.keys, part.values, strict=True):
                        name = _text(key) if key is not None else None
                        if name is not None:
                            yield name, value


def _chosen(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).endswith(_CHOICE):
            told = node.args[0]
            if isinstance(told, ast.Constant) and isinstance(told.value, bool):
                yield "VLLM_USE_V1", ast.copy_location(ast.Constant(int(told.value)), told)
            else:
                yield "VLLM_USE_V1", told


def _is_environ(node: ast.expr, copies: Collection[str] = ()) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in {"os.environ", "environ", *copies}


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _default_of(name: str, value: ast.expr) -> ast.expr | None:
    """Of `os.environ["NAME"] = os.environ.get("NAME", "value")`, which is another way to write `setdefault`."""
    asks = isinstance(value, ast.Call) and ast.unparse(value.func) in {"os.environ.get", "environ.get", "os.getenv"}
    if not isinstance(value, ast.Call) or not asks or len(value.args) != 2 or _text(value.args[0]) != name:
        return None
    return value.args[1]


def _known(value: ast.expr) -> str | Unknown:
    literal = value.value if isinstance(value, ast.Constant) else None
    if isinstance(literal, str | int):
        return str(literal)
    return Unknown(f"{ast.unparse(value)} is known only when it runs")
