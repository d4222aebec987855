"""Names of a Python module or function and what they are assigned, as far as one assignment tells."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LONGEST_DEFAULT = 40


@dataclass
class Scope:
    """Names of a module or function: value nodes by name, None where assigned more than once.

    mutated: keys that a dictionary gets later, by its name: the key, the value, and why it cannot be told or ""; None
    as value takes the key out. function: the function that it is the scope of. parameters: those that keep their value.
    spoilt: why a name's value cannot be told. spoilt_at: how many of its changes came before. keys: the words that a
    loop's variable stands for.
    """

    name: str
    values: dict[str, ast.expr | None] = field(default_factory=dict)
    above: "Scope | None" = None
    mutated: dict[str, list[tuple[str, ast.expr | None, str]]] = field(default_factory=dict)
    spoilt: dict[str, str] = field(default_factory=dict)
    spoilt_at: dict[str, int] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    function: Function | None = None
    parameters: set[str] = field(default_factory=set)

    def find(self, name: str) -> "Scope | None":
        """The scope that has a name."""
        scope: Scope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.above
        return scope


def scope_of(node: ast.Module | Function, name: str, above: Scope | None) -> Scope:
    """Names assigned in a module or function, its nested functions and classes left out."""
    scope = Scope(name, above=above)
    if not isinstance(node, ast.Module):
        scope.function = node
        parameters = node.args
        every = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
        for parameter in every + [one for one in (parameters.vararg, parameters.kwarg) if one]:
            scope.values[parameter.arg] = None
            scope.parameters.add(parameter.arg)
            scope.spoilt[parameter.arg] = f"{parameter.arg} is an argument of {name}()"
        for argument, default in _defaults(parameters):
            scope.spoilt[argument] += f", {default!r} where it is left out"
    todo: list[tuple[ast.AST, bool]] = [(child, False) for child in reversed(node.body)]
    while todo:
        one, conditional = todo.pop()
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            if not isinstance(one, ast.Lambda):
                _bind(scope, one.name, None)
            continue
        if isinstance(one, ast.Global | ast.Nonlocal):
            for shared in one.names:
                home = above.find(shared) if above is not None else None
                if home is not None:
                    home.values[shared] = None
            continue
        _assignments(scope, one, conditional)
        inner = conditional or isinstance(one, ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match)
        if is_main_guard(one):
            inner = conditional
        todo += [(child, inner) for child in reversed(list(ast.iter_child_nodes(one)))]
    return scope


def _defaults(parameters: ast.arguments) -> Iterator[tuple[str, Any]]:
    """Parameters whose default is a short constant that says something."""
    placed = [*parameters.posonlyargs, *parameters.args]
    last = zip(placed[len(placed) - len(parameters.defaults) :], parameters.defaults, strict=True)
    for parameter, default in (*last, *zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)):
        value = default.value if isinstance(default, ast.Constant) else None
        if value is not None and len(repr(value)) <= _LONGEST_DEFAULT:
            yield parameter.arg, value


def is_main_guard(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`, which holds where the file is the program."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def _assignments(scope: Scope, node: ast.AST, conditional: bool) -> None:
    """Record what one statement or expression binds."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _assign(scope, target, node.value, conditional)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        _bind(scope, node.target.id, None if conditional else node.value)
    elif isinstance(node, ast.AugAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
        _bind(scope, node.target.id, None)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        _loop(scope, node)
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        _spoil(scope, node.optional_vars.id, f"{node.optional_vars.id} is known only when it runs")
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            bound = (alias.asname or alias.name).partition(".")[0]
            _spoil(scope, bound, f"{bound} is imported from another module")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if node.func.attr in _CHANGES and isinstance(owner, ast.Name) and owner.id in scope.values:
            _change(scope, owner.id, node, node.func.attr, conditional)


def _loop(scope: Scope, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
    """`for name in ("a", "b")`: a name that is no value, and a key that is one of two."""
    for one in ast.walk(node.target):
        if isinstance(one, ast.Name):
            _spoil(scope, one.id, f"{one.id} takes several values in a loop")
    words = [_text(one) for one in node.iter.elts] if isinstance(node.iter, ast.Tuple | ast.List) else []
    if isinstance(node.target, ast.Name):
        told = tuple(word for word in words if word is not None)
        scope.keys[node.target.id] = told if len(told) == len(words) else ()


def _assign(scope: Scope, target: ast.expr, value: ast.expr, conditional: bool) -> None:
    """`name = value`, `name["key"] = value`, `a, b = value`."""
    if isinstance(target, ast.Name):
        _bind(scope, target.id, None if conditional else value)
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        _mutate(scope, target, value, conditional)
    elif isinstance(target, ast.Tuple | ast.List):
        for one in ast.walk(target):
            if isinstance(one, ast.Name):
                _bind(scope, one.id, None)


def _spoil(scope: Scope, name: str, why: str) -> None:
    _bind(scope, name, None)
    scope.spoilt.setdefault(name, why)


def _bind(scope: Scope, name: str, value: ast.expr | None) -> None:
    scope.parameters.discard(name)
    scope.values[name] = None if name in scope.values else value


def _mutate(scope: Scope, target: ast.Subscript, value: ast.expr, conditional: bool) -> None:
    """`kwargs["key"] = value`."""
    name = target.value.id if isinstance(target.value, ast.Name) else ""
    key = _text(target.slice)
    variable = target.slice.id if isinstance(target.slice, ast.Name) else ""
    keys = scope.keys.get(variable, ()) if key is None else (key,)
    if not keys:
        _change_unknown(scope, name, f"{name} gets keys that are known only when it runs")
    for one in keys:
        _gets(scope, name, one, value, "is set under a condition" if conditional else "")


def _change(scope: Scope, name: str, call: ast.Call, method: str, conditional: bool) -> None:
    """`kwargs.update(key=value)`, `kwargs.pop("key")` and the like: keys that are told are the only ones touched."""
    entries = _touched(call, method)
    if entries is None:
        _change_unknown(scope, name, f"{name} is changed by .{method}()")
        return
    for key, value in entries.items():
        sure = method in {"update", "pop"} and not conditional
        if sure and method == "pop":
            _gets(scope, name, key, None, "")
            continue
        how = f"is changed by .{method}()" if method != "update" else "is set under a condition"
        _gets(scope, name, key, value, "" if sure else how)


def _change_unknown(scope: Scope, name: str, why: str) -> None:
    scope.spoilt[name] = why
    scope.spoilt_at[name] = len(scope.mutated.get(name, []))
    scope.parameters.discard(name)


def _touched(call: ast.Call, method: str) -> dict[str, ast.expr] | None:
    """The keys that a call of a dictionary's method may set or take out, with an expression for each."""
    if method in {"pop", "setdefault"}:
        key = _text(call.args[0]) if call.args else None
        return None if key is None else {key: call}
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    for argument in call.args:
        if not isinstance(argument, ast.Dict):
            return None
        given |= {_text(key): value for key, value in zip(argument.keys, argument.values, strict=True)}
    told = {key: value for key, value in given.items() if key is not None}
    return told if method == "update" and len(told) == len(given) else None


def _gets(scope: Scope, name: str, key: str, value: ast.expr | None, why: str) -> None:
    scope.mutated.setdefault(name, []).append((key, value, f'{name}["{key}"] {why}' if why else ""))


def _text(key: ast.expr | None) -> str | None:
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


_CHANGES = {"update", "setdefault", "pop", "clear"}
