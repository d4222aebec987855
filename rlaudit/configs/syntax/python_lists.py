"""Lists of Python source with what is added to them later: `args += [...]`, `args.extend(...)`, `args.append(...)`.

Followed is one name in the function in which the list is written. What stands in a branch or a loop there is added
under a condition; what another function adds is not seen.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_literals import literal_texts
from rlaudit.configs.syntax.python_program import Around
from rlaudit.configs.syntax.python_scopes import is_main_guard
from rlaudit.configs.syntax.python_values import DEEPEST, PythonValues

# Each is compared with every statement: a file of flags by the thousand is no program that starts servers.
MOST_LISTS = 100
_GROWS = {"append", "extend", "insert"}
_BRANCHES = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match


@dataclass(frozen=True, eq=False)
class GrownList:
    """A list with its additions.

    display: as it is written first. words: what it holds for certain, in order. maybe: what is added under a condition,
    one tuple for each place. open: why more may be in it, "" where all is told. handed_to: the last names of the
    functions that get it.
    """

    display: Node
    words: tuple[Node, ...]
    maybe: tuple[tuple[Node, ...], ...]
    open: str
    handed_to: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is added to it."""
        return not self.open and not self.maybe and len(self.words) == len(self.display.elements())


@dataclass(frozen=True, eq=False)
class _At:
    """A node of the tree, the functions around it, and the branches in the innermost of these."""

    node: ast.AST
    around: Around
    branches: tuple[tuple[ast.AST, str], ...]


def grown_lists(text: str, path: str, wanted: Callable[[str], bool]) -> tuple[GrownList, ...]:
    """Every list or tuple that holds a text which is wanted. Raises UnreadableText."""
    values = PythonValues(text, path)
    every = tuple(_nodes(values.tree))
    assigned = [(one, name) for one in every if (name := _assigned(one.node))]
    found = [one for one in every
             if isinstance(one.node, ast.List | ast.Tuple) and any(map(wanted, literal_texts(one.node)))]  # fmt: skip
    changes = tuple(one for one in every if isinstance(one.node, ast.AugAssign | ast.Assign | ast.Call))
    return tuple(_grown(one, changes, assigned, values) for one in found[:MOST_LISTS])


def _grown(first: _At, every: tuple[_At, ...], assigned: list[tuple[_At, str]], values: PythonValues) -> GrownList:
    display = first.node
    assert isinstance(display, ast.List | ast.Tuple)
    scope = values.scope(first.around)
    whole = values.node(display, scope, "", None, 0)
    named = next((name for one, name in assigned if getattr(one.node, "value", None) is display), "")
    words, maybe = [*_filled(display, first, values)], list[tuple[Node, ...]]()
    why = _untold(display, first, values)
    for one in every:
        added = _added(one.node, named) if named and one.around == first.around else None
        if added is None or not _follows(one, first, named, assigned):
            continue
        more = _filled(added, one, values)
        told = tuple(node for node in more if not isinstance(node.value, Unknown) or isinstance(added, ast.List))
        if len(told) < len(more):
            why = why or next(node.value.reason for node in more if isinstance(node.value, Unknown))
        why = why or _untold(added, one, values)
        if one.branches[: len(first.branches)] == first.branches and len(one.branches) > len(first.branches):
            maybe.append(told)
        else:
            words += told
    handed = {
        _last(one.node.func)
        for one in every
        if isinstance(one.node, ast.Call)
        and one.around == first.around
        and any(_is(value, display, named) for value in (*one.node.args, *(key.value for key in one.node.keywords)))
    }
    return GrownList(whole, tuple(words), tuple(maybe), why, frozenset(handed))


def _nodes(tree: ast.Module) -> Iterator[_At]:
    """All of the tree in the order of its lines; iterative, so that nesting costs no stack."""
    todo = [_At(tree, (), ())]
    while todo:
        at = todo.pop()
        yield at
        around, branches = at.around, at.branches
        if isinstance(at.node, ast.FunctionDef | ast.AsyncFunctionDef):
            around, branches = (*around[-DEEPEST:], at.node), ()
        branching = isinstance(at.node, _BRANCHES) and not is_main_guard(at.node)
        children: list[_At] = []
        for field, value in ast.iter_fields(at.node):
            inner = (*branches[-DEEPEST:], (at.node, field)) if branching else branches
            listed = value if isinstance(value, list) else (value,)
            children += (_At(child, around, inner) for child in listed if isinstance(child, ast.AST))
        todo += reversed(children)


def _assigned(node: ast.AST) -> str:
    """The name that a statement gives to a value: `args`, `self.args`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _name(node.targets[0])
    return _name(node.target) if isinstance(node, ast.AnnAssign) and node.value is not None else ""


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return f"{node.value.id}.{node.attr}" if is_own else ""  # type: ignore[attr-defined]


def _last(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _is(value: ast.expr, display: ast.AST, named: str) -> bool:
    return value is display or (bool(named) and _name(value) == named)


def _added(node: ast.AST, named: str) -> ast.expr | None:
    """What a statement adds to the list of a name, as an expression that is a list."""
    match node:
        case ast.AugAssign(target=target, op=ast.Add(), value=value) if _name(target) == named:
            return value
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add(), right=right)):
            return right if _name(target) == named == _name(left) else None
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[*_, last]):
            if method not in _GROWS or _name(owner) != named:
                return None
            return last if method == "extend" else ast.copy_location(ast.List([last], ast.Load()), last)
    return None


def _follows(one: _At, first: _At, named: str, assigned: list[tuple[_At, str]]) -> bool:
    """Whether an addition is to this list: it comes later, and no other list has got the name for certain between."""
    line, start = getattr(one.node, "lineno", 0), getattr(first.node, "lineno", 0)
    between = (
        other for other, name in assigned
        if name == named and other.around == first.around and start < getattr(other.node, "lineno", 0) < line
        and one.branches[: len(other.branches)] == other.branches and not _added(other.node, named)
    )  # fmt: skip
    return line >= start and next(between, None) is None


def _filled(added: ast.expr, at: _At, values: PythonValues) -> tuple[Node, ...]:
    """The elements of a list, starred ones that the file tells filled in; a list that is not told as one unknown."""
    scope = values.scope(at.around)
    if not isinstance(added, ast.List | ast.Tuple):
        node = values.node(added, scope, "", None, 0)
        return node.elements() if isinstance(node.value, tuple) else (_unknown(node),)
    found: list[Node] = []
    for one in added.elts:
        element = values.node(one.value if isinstance(one, ast.Starred) else one, scope, "", None, 0)
        found += element.elements() if isinstance(one, ast.Starred) and element.elements() else (element,)
    return tuple(found)


def _untold(added: ast.expr, at: _At, values: PythonValues) -> str:
    """Why a starred part of a list is not told, "" where all are."""
    starred = [one.value for one in added.elts if isinstance(one, ast.Starred)] if isinstance(added, ast.List) else []
    nodes = (values.node(one, values.scope(at.around), "", None, 0) for one in starred)
    return next((_unknown(node).value.reason for node in nodes if not isinstance(node.value, tuple)), "")


def _unknown(node: Node) -> Node:
    return node if isinstance(node.value, Unknown) else Node(Unknown("no list"), node.place, node.key, node.text)
