"""The mutants of a module: one change of one decision each, made in its syntax tree."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Each for what a hurried reader takes it for.
_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd,
}  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What types and decorators say decides nothing.
_NOT_MUTATED = {"annotation", "returns", "decorator_list", "type_params", "bases"}


@dataclass(frozen=True)
class Mutant:
    """One change of one decision."""

    path: Path
    line: int
    # Whether the line runs only when the module is imported.
    at_import: bool
    before: str
    after: str
    # Among the mutants of the module.
    number: int


@dataclass(frozen=True)
class _Change:
    node: ast.AST
    # The line and expression to show.
    shown: ast.expr | ast.stmt
    at_import: bool
    field: str
    value: object


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a module, in the order of its tree."""
    mutants = []
    for number, change in enumerate(_changes(_parsed(path))):
        before, old = ast.unparse(change.shown), getattr(change.node, change.field)
        setattr(change.node, change.field, change.value)
        mutants.append(Mutant(path, change.shown.lineno, change.at_import, before, ast.unparse(change.shown), number))
        setattr(change.node, change.field, old)
    return mutants


def planted(mutant: Mutant) -> ast.Module:
    """Return the tree of the module with the mutant in it."""
    tree = _parsed(mutant.path)
    change = list(_changes(tree))[mutant.number]
    setattr(change.node, change.field, change.value)
    return ast.fix_missing_locations(tree)


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _changes(
    node: ast.AST, shown: ast.AST | None = None, at_import: bool = True, is_test: bool = False
) -> Iterator[_Change]:
    """Yield the changes of a node and of those below it. is_test: whether the function around it returns a bool."""
    is_code = isinstance(node, ast.expr | ast.stmt)
    if is_code:
        around = shown if isinstance(node, ast.Constant) and shown is not None else node
        yield from (_Change(node, around, at_import, field, value) for field, value in _other(node, is_test))
    if isinstance(node, _FUNCTIONS):
        returns = getattr(node, "returns", None)
        at_import, is_test = False, isinstance(returns, ast.Name) and returns.id == "bool"
    # A number alone says little: what it stands in is shown, but no whole statement.
    shown = node if isinstance(node, ast.expr) else None
    for field, below in ast.iter_fields(node):
        for child in below if isinstance(below, list) else [below]:
            if isinstance(child, ast.AST) and field not in _NOT_MUTATED:
                yield from _changes(child, shown, at_import, is_test)


def _other(node: ast.expr | ast.stmt, is_test: bool) -> Iterator[tuple[str, object]]:
    """Yield a field of the node and what else it may be."""
    match node:
        case ast.Compare(ops=ops):
            for at, comparison in enumerate(ops):
                yield "ops", [*ops[:at], _OTHER[type(comparison)](), *ops[at + 1 :]]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.UnaryOp(op=op) if type(op) in _OTHER:
            yield "op", _OTHER[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            yield "operand", ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant(value=bool(switch)):
            yield "value", not switch
        case ast.Constant(value=int(number)):
            yield "value", number + 1
        case ast.Constant(value=float(number)):
            yield "value", 2 * number if number else 1.0
        case ast.Return(
            value=ast.expr(),
        ) if is_test:
            yield "value", ast.UnaryOp(ast.Not(), node.value)
