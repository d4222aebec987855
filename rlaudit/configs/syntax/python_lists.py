"""Lists, tuples and dictionaries that stand in Python source, found by what they hold.

What is added to a list later (`args += [...]`, `args.extend(...)`, `args.append(...)`) is followed by its name in the
function in which it is written. What stands in a branch or a loop there is added under a condition; what another
function adds is not seen.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.python_literals import literal_texts
from rlaudit.configs.syntax.python_values import PythonValues
from rlaudit.configs.syntax.python_walk import At, nodes_of

# Each is compared with every statement: a file of flags by the thousand is no program that starts servers.
MOST_LISTS = 100
_GROWS = {"append", "extend", "insert"}


@dataclass(frozen=True, eq=False)
class GrownList:
    """A list with its additions."""

    # As it is written first.
    display: Node
    # What it holds for certain, in order.
    words: tuple[Node, ...]
    # What is added under a condition, one tuple for each place.
    maybe: tuple[tuple[Node, ...], ...]
    # Why more may be in it, "" if all is told.
    open: str


def dictionaries(text: str, path: str, key: str) -> tuple[Node, ...]:
    """Return every dictionary display that has a key, the outermost first. Raises UnreadableText."""
    values = PythonValues(text, path)
    found = (
        (at.node, at) for at in nodes_of(values.tree) if isinstance(at.node, ast.Dict)
        and any(isinstance(one, ast.Constant) and one.value == key for one in at.node.keys)
    )  # fmt: skip
    return tuple(values.node(node, at) for node, at in found)


def grown_lists(text: str, path: str, wanted: Callable[[str], bool]) -> tuple[GrownList, ...]:
    """Return every list or tuple that holds a text which is wanted, at first or by what is added to it. Raises
    UnreadableText.
    """
    values = PythonValues(text, path)
    every = nodes_of(values.tree)
    assigned = [(one, name) for one in every if (name := _assigned(one.node))]
    changes = tuple(one for one in every if isinstance(one.node, ast.AugAssign | ast.Assign | ast.Call))
    named = {name for one, name in assigned if isinstance(getattr(one.node, "value", None), ast.List)}
    grown = {name for name in named if any(_brings(one.node, name, wanted) for one in changes)}
    later = {getattr(one.node, "value", None) for one, name in assigned if name in grown}
    found = [
        one for one in every if isinstance(one.node, ast.List | ast.Tuple)
        and (one.node in later or any(map(wanted, literal_texts(one.node))))
    ]  # fmt: skip
    return tuple(_grown(one, changes, assigned, values) for one in found[:MOST_LISTS])


def _grown(first: At, every: tuple[At, ...], assigned: list[tuple[At, str]], values: PythonValues) -> GrownList:
    display = first.node
    assert isinstance(display, ast.List | ast.Tuple)
    named = next((name for one, name in assigned if getattr(one.node, "value", None) is display), "")
    words, maybe = [*_filled(display, first, values)], list[tuple[Node, ...]]()
    whole = Node(tuple(words), values.text.place(display, ""))
    why = _untold(display, first, values)
    for one in every:
        added = _added(one.node, named) if named and one.functions == first.functions else None
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
    return GrownList(whole, tuple(words), tuple(maybe), why)


def _assigned(node: ast.AST) -> str:
    """Return the name that a statement gives to a value: `args`, `self.args`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _name(node.targets[0])
    return _name(node.target) if isinstance(node, ast.AnnAssign) and node.value is not None else ""


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return f"{node.value.id}.{node.attr}" if is_own else ""  # type: ignore[attr-defined]


def _added(node: ast.AST, named: str) -> ast.expr | None:
    """Return what a statement adds to the list of a name, as an expression that is a list."""
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


def _brings(node: ast.AST, named: str, wanted: Callable[[str], bool]) -> bool:
    """Return whether a statement adds a text that is wanted to the list of a name."""
    added = _added(node, named)
    return isinstance(added, ast.List | ast.Tuple) and any(map(wanted, literal_texts(added)))


def _follows(one: At, first: At, named: str, assigned: list[tuple[At, str]]) -> bool:
    """Return whether an addition is to this list: it comes later, and no other list certainly has the name by then."""
    line, start = getattr(one.node, "lineno", 0), getattr(first.node, "lineno", 0)
    between = (
        other for other, name in assigned
        if name == named and other.functions == first.functions and start < getattr(other.node, "lineno", 0) < line
        and one.branches[: len(other.branches)] == other.branches and not _added(other.node, named)
    )  # fmt: skip
    return line >= start and next(between, None) is None


def _filled(added: ast.expr, at: At, values: PythonValues) -> tuple[Node, ...]:
    """Return the elements of a list, with known starred ones filled in; a list that is not known is one unknown."""
    if not isinstance(added, ast.List | ast.Tuple):
        node = values.node(added, at)
        return node.elements() if isinstance(node.value, tuple) else (_unknown(node),)
    found: list[Node] = []
    for one in added.elts:
        element = values.node(one.value if isinstance(one, ast.Starred) else one, at)
        found += element.elements() if isinstance(one, ast.Starred) and element.elements() else (element,)
    return tuple(found)


def _untold(added: ast.expr, at: At, values: PythonValues) -> str:
    """Return why a starred part of a list is not known, "" if all are."""
    starred = [one.value for one in added.elts if isinstance(one, ast.Starred)] if isinstance(added, ast.List) else []
    nodes = (values.node(one, at) for one in starred)
    return next((_unknown(node).value.reason for node in nodes if not isinstance(node.value, tuple)), "")


def _unknown(node: Node) -> Node:
    return node if isinstance(node.value, Unknown) else Node(Unknown("no list"), node.place, node.key, node.text)
