"""The names of a Python file: what it imports, and the names that it binds once.

A name that a module or a function binds once keeps its value. Any other has a reason instead: its value is known only
when the program runs.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rlaudit.configs.syntax.python_walk import At, Function, nodes_of

_CHANGES = {"update", "setdefault", "pop", "popitem", "clear"}


@dataclass(frozen=True)
class Bound:
    """What one name of a module or function is bound to."""

    # None if the name is bound more than once, or if its value is known only when the program runs.
    value: ast.expr | None
    # Why there is no value.
    why: str = ""
    # The first line that changes a dictionary after it was made, 0 if none does.
    changed_at: int = 0


@dataclass
class Names:
    """The names of one file."""

    # Where a name comes from: `LLM` is `vllm.LLM`; a relative import begins with a dot.
    imports: dict[str, str] = field(default_factory=dict)
    # By the function that binds it, None for the module.
    bound: dict[tuple[Function | None, str], Bound] = field(default_factory=dict)

    def find(self, name: str, functions: tuple[Function, ...]) -> tuple[Bound, tuple[Function, ...]] | None:
        """Return the binding of a name that is used inside `functions`, and the functions around that binding; None if
        nothing binds it.
        """
        for count in range(len(functions), -1, -1):
            bound = self.bound.get((functions[count - 1] if count else None, name))
            if bound is not None:
                return bound, functions[:count]
        return None

    def origin(self, node: ast.expr) -> str:
        """Return where a name or attribute was imported from; "" if the file does not import it."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        home = self.imports.get(node.id) if isinstance(node, ast.Name) else None
        return ".".join([home, *reversed(parts)]) if home is not None else ""


@lru_cache(maxsize=8)
def names_of(tree: ast.Module) -> Names:
    """Return the names of one file."""
    names = Names()
    # The body of a class binds attributes, which are not reached by the name alone.
    attributes = {id(line) for at in nodes_of(tree) if isinstance(at.node, ast.ClassDef) for line in at.node.body}
    for at in nodes_of(tree):
        if id(at.node) not in attributes:
            _bind(names, at)
        if isinstance(at.node, Function):
            for name in _arguments(at.node):
                names.bound[at.node, name] = Bound(None, f"{name} is an argument of {at.node.name}()")
        elif isinstance(at.node, ast.Import | ast.ImportFrom):
            names.imports = {**_imported(at.node), **names.imports}
    # What a function changes may be bound below it.
    for at in nodes_of(tree):
        _share(names, at)
        _change(names, at)
    return names


def _bind(names: Names, at: At) -> None:
    """Bind the names that a node gives a value; a second value leaves a name without one."""
    home = at.functions[-1] if at.functions else None
    for name, value, why in _bindings(at.node):
        before = names.bound.get((home, name))
        again = Bound(None, (before.why if before is not None else "") or f"{name} is assigned more than once")
        names.bound[home, name] = Bound(value, why) if before is None else again


def _share(names: Names, at: At) -> None:
    """Make a name unknown that another function may bind by `global` or `nonlocal`."""
    for name in at.node.names if isinstance(at.node, ast.Global | ast.Nonlocal) else ():
        outer = names.find(name, at.functions[:-1])
        if outer is not None:
            home = outer[1][-1] if outer[1] else None
            names.bound[home, name] = Bound(None, f"{name} is shared between functions")


def _change(names: Names, at: At) -> None:
    """Note a change of a dictionary at its name."""
    binding = names.find(_changed(at.node), at.functions)
    if binding is not None and not binding[0].changed_at:
        bound, around = binding
        home = around[-1] if around else None
        names.bound[home, _changed(at.node)] = replace(bound, changed_at=getattr(at.node, "lineno", 0))


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None, str]]:
    """Yield the names that a statement or expression binds, each with its value, or with the reason why it has none."""
    match node:
        case ast.Assign():
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value, ""
                else:
                    yield from _stored(target, "is one of several values that are assigned together")
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value, ""
        case ast.AugAssign(target=ast.Name(id=name)) | ast.NamedExpr(target=ast.Name(id=name)):
            yield name, None, f"{name} is known only when it runs"
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield from _stored(node.target, "takes several values in a loop")
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _stored(target, "is known only when it runs")
        case ast.Import() | ast.ImportFrom():
            yield from ((name, None, f"{name} is imported from another module") for name in _imported(node))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name, None, f"{node.name} is defined in this file"
        case ast.Global() | ast.Nonlocal():
            yield from ((name, None, f"{name} is shared between functions") for name in node.names)


def _stored(target: ast.expr, why: str) -> Iterator[tuple[str, None, str]]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, None, f"{node.id} {why}"


def _changed(node: ast.AST) -> str:
    """Return the name of the dictionary that a statement changes; "" for any other statement."""
    match node:
        case (
            ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))])
            | ast.Delete(targets=[ast.Subscript(value=ast.Name(id=name))])
        ):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGES:
            return name
    return ""


def _arguments(function: Function) -> Iterator[str]:
    signature = function.args
    arguments = (*signature.posonlyargs, *signature.args, *signature.kwonlyargs, signature.vararg, signature.kwarg)
    yield from (argument.arg for argument in arguments if argument is not None)


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    origins: dict[str, str] = {}
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = alias.asname or alias.name.partition(".")[0]
            origins[name] = alias.name if alias.asname else name
        else:
            module = "." * node.level + (node.module or "")
            origins[alias.asname or alias.name] = f"{module}.{alias.name}"
    return origins
