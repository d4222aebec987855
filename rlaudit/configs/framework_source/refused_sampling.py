"""Keywords that a release's SamplingParams does not take, given in the call or through a dictionary of the function.

Filling in a loop over literal names counts: `for key in ["n", "best_of"]: kwargs[key] = ...; SamplingParams(**kwargs)`.
A key that is filled only where the class has it does not, nor does anything of a dictionary that keys are taken out of.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlaudit.configs.framework_source.version_tests import VersionTests
from rlaudit.vllm.removed import removed

CLASS = "SamplingParams"
_TAKES_OUT = {"pop", "clear", "popitem"}
_ASKS = {"hasattr", "signature"}


@dataclass(frozen=True)
class Refused:
    """One keyword. node: where it is written. always: no branch leads to it or to the call. returned: whether the
    function gives back what it makes, and so makes it for its callers' requests.
    """

    node: ast.AST
    name: str
    always: bool
    returned: bool


@dataclass(frozen=True)
class _Step:
    """A statement or a call of a function. always: no branch leads to it. keys: the names that a loop gives a key."""

    node: ast.AST
    always: bool
    keys: Mapping[str, tuple[str, ...]]


def refused_sampling(
    function: ast.FunctionDef | ast.AsyncFunctionDef, classes: frozenset[str], tests: VersionTests
) -> Iterator[Refused]:
    """What a function gives the class in vain. classes: how the file calls it. tests: of the release."""
    steps = list(_steps(function, tests))
    calls = [step for step in steps if isinstance(step.node, ast.Call) and _spelt(step.node.func) in classes]
    if not calls:
        return
    out = set(_taken_out(steps))
    back = [step.node.value for step in steps if isinstance(step.node, ast.Return)]
    names = {one.id for one in back if isinstance(one, ast.Name)}
    for step in calls:
        call = step.node
        assert isinstance(call, ast.Call)
        returned = call in back or any(_name(one.node) in names for one in steps if _value(one.node) is call)
        for node, name, always in _given(call, steps, out):
            if removed("sampling", name, tests.version) is not None:
                yield Refused(node, name, step.always and always, returned)


def _given(call: ast.Call, steps: list[_Step], out: set[str]) -> Iterator[tuple[ast.AST, str, bool]]:
    """Keywords of a call and keys of the dictionaries that it takes, each with whether no branch leads to it."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword, keyword.arg, True
        elif isinstance(keyword.value, ast.Name) and keyword.value.id not in out:
            for step in steps:
                if getattr(step.node, "lineno", 0) <= call.lineno:
                    yield from ((node, name, step.always) for node, name in _filled(step, keyword.value.id))


def _filled(step: _Step, mapping: str) -> Iterator[tuple[ast.AST, str]]:
    """The keys that a statement puts into a dictionary."""
    value = _value(step.node)
    if _name(step.node) == mapping and isinstance(value, ast.Dict):
        yield from ((key, key.value) for key in value.keys if isinstance(key, ast.Constant)
                    if isinstance(key.value, str))  # fmt: skip
    if not isinstance(step.node, ast.Assign):
        return
    for target in step.node.targets:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == mapping:
            key = target.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield target, key.value
            elif isinstance(key, ast.Name):
                yield from ((target, name) for name in step.keys.get(key.id, ()))


def _steps(function: ast.FunctionDef | ast.AsyncFunctionDef, tests: VersionTests) -> Iterator[_Step]:
    """In the order of the text; without what is done only where the class has a name, or in other releases."""
    todo = [_Step(line, True, {}) for line in reversed(function.body)]
    while todo:
        step = todo.pop()
        node, always, keys = step.node, step.always, step.keys
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            if _asks(node.test):
                continue
            holds = tests.test(node.test)
            if holds is not None and not isinstance(node, ast.While):
                taken = node.body if holds else node.orelse
                lines = taken if isinstance(taken, list) else [taken]
                todo += [_Step(line, always, keys) for line in reversed(lines)]
                continue
            always = False
        elif isinstance(node, ast.Try | ast.Match):
            always = False
        elif isinstance(node, ast.For):
            names = _literal_names(node.iter)
            always = always and bool(names)
            if isinstance(node.target, ast.Name):
                keys = {**keys, node.target.id: names}
        yield step
        todo += [_Step(child, always, keys) for child in reversed(list(ast.iter_child_nodes(node)))]


def _asks(test: ast.expr) -> bool:
    """`if hasattr(SamplingParams, key)`, `if key in parameters`."""
    called = {getattr(one.func, "attr", getattr(one.func, "id", "")) for one in ast.walk(test)
              if isinstance(one, ast.Call)}  # fmt: skip
    compared = (one for one in ast.walk(test) if isinstance(one, ast.Compare))
    return bool(called & _ASKS) or any(isinstance(how, ast.In | ast.NotIn) for one in compared for how in one.ops)


def _literal_names(value: ast.expr) -> tuple[str, ...]:
    elements = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else []
    return tuple(one.value for one in elements if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _taken_out(steps: list[_Step]) -> Iterator[str]:
    """Dictionaries that keys are taken out of, and names that are bound twice."""
    bound: set[str] = set()
    for step in steps:
        match step.node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _TAKES_OUT:
                yield name
            case ast.Delete(targets=targets):
                yield from (one.value.id for one in targets if isinstance(one, ast.Subscript)
                            if isinstance(one.value, ast.Name))  # fmt: skip
            case ast.Assign() | ast.AnnAssign() if name := _name(step.node):
                if name in bound:
                    yield name
                bound.add(name)


def _spelt(function: ast.expr) -> str:
    """`Class` and `module.Class`."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def _name(node: ast.AST) -> str:
    """The variable that an assignment binds, "" for other statements and targets."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _value(node: ast.AST) -> ast.expr | None:
    return node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
