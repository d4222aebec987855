"""Names of a Python module or function and what they are assigned, as far as one assignment tells."""

import ast
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Scope:
    """Names of a module or function: value nodes by name, None where assigned more than once."""

    name: str
    values: dict[str, ast.expr | None] = field(default_factory=dict)
    above: "Scope | None" = None
    mutated: dict[str, list[tuple[str, ast.expr]]] = field(default_factory=dict)
    spoilt: dict[str, str] = field(default_factory=dict)

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
        parameters = node.args
        every = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
        for parameter in every + [one for one in (parameters.vararg, parameters.kwarg) if one]:
            scope.values[parameter.arg] = None
            scope.spoilt[parameter.arg] = f"{parameter.arg} is an argument of {name}()"
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
        if _is_main_guard(one):
            inner = conditional
        todo += [(child, inner) for child in reversed(list(ast.iter_child_nodes(one)))]
    return scope


def _is_main_guard(node: ast.AST) -> bool:
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
        for one in ast.walk(node.target):
            if isinstance(one, ast.Name):
                _spoil(scope, one.id, f"{one.id} takes several values in a loop")
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        _spoil(scope, node.optional_vars.id, f"{node.optional_vars.id} is known only when it runs")
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            bound = (alias.asname or alias.name).partition(".")[0]
            _spoil(scope, bound, f"{bound} is imported from another module")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        changes = node.func.attr in {"update", "setdefault", "pop", "clear"}
        if changes and isinstance(owner, ast.Name) and owner.id in scope.values:
            scope.spoilt[owner.id] = f"{owner.id} is changed by .{node.func.attr}()"


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
    scope.values[name] = None if name in scope.values else value


def _mutate(scope: Scope, target: ast.Subscript, value: ast.expr, conditional: bool) -> None:
    """`kwargs["key"] = value`."""
    name = target.value.id if isinstance(target.value, ast.Name) else ""
    if not isinstance(target.slice, ast.Constant) or not isinstance(target.slice.value, str):
        scope.spoilt[name] = f"{name} gets keys that are known only when it runs"
        return
    entry = _CONDITIONAL if conditional else value
    scope.mutated.setdefault(name, []).append(
        (target.slice.value, ast.copy_location(entry, value) if conditional else entry)
    )


_CONDITIONAL: ast.expr = ast.Name("a value set under a condition")
