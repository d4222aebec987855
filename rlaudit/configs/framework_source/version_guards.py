"""Lines by which a program, or the copy of a framework around a config, stops under some releases of vLLM.

    if Version(vllm.__version__) < Version("0.8.4"):
        raise NotImplementedError(...)

Read are a `raise` in the branch that a comparison of vLLM's version takes, and an `assert` of one, where a module or a
function has them unconditionally. Nothing else of a program is interpreted: what depends on anything else is passed by.
"""

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from rlaudit.configs.framework_source.checkout import Checkout, shown
from rlaudit.configs.source import Source, read_inside
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.settings.place import Place
from rlaudit.settings.rollout_config import VersionGuard

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.In: lambda left, right: left in right, ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip
# Of a hundred files that name vLLM, one does so; parsing the others would take seconds.
_NAMES_IT = re.compile(r"\bvllm\b.*version|version.*\bvllm\b")
# Functions that make a version of a text.
_MADE = {"Version", "parse", "parse_version", "LooseVersion", "StrictVersion"}
# Modules that have `__version__`.
_OF_VLLM = {"vllm", "vllm.version"}


class _NoGuardError(Exception):
    """An expression that is no comparison of vLLM's version."""


def version_guards(
    source: Source, copy: Checkout | None, vllm: Version, files: Collection[str] = ()
) -> tuple[VersionGuard, ...]:
    """Return the lines of a program, and of the copy around it, that stop under a release of vLLM.

    files: those of the copy that build the engine, whose functions run. Nothing shows that another one's do.
    """
    program = _guards(source.path, source.text, str(vllm)) if source.suffix == ".py" else ()
    of_copy = _of_a_copy(copy, str(vllm), frozenset(files)) if copy is not None else ()
    return tuple(dict.fromkeys((*(guard for guard, _ in program), *of_copy)))


@lru_cache(maxsize=16)
def _of_a_copy(copy: Checkout, vllm: str, engine: frozenset[str]) -> tuple[VersionGuard, ...]:
    stopping: list[VersionGuard] = []
    for path in sorted(Path(copy.root, copy.package).rglob("*.py")):
        runs = str(path.relative_to(copy.root)) in engine
        guards = _guards(shown(str(path)), read_inside(path, copy.trees) or "", vllm)
        stopping += [guard for guard, when_imported in guards if runs or when_imported]
    return tuple(stopping)


def _guards(path: str, text: str, vllm: str) -> tuple[tuple[VersionGuard, bool], ...]:
    """Return the lines of a text that stop, each with whether its import gets there."""
    if _NAMES_IT.search(text) is None:
        return ()
    try:
        module = parse(text)
    except UnreadableText:
        return ()
    names: dict[str, Any] = {}
    stops = [(guard, True) for guard in _stopping(module.body, names, vllm)]
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
            known = {name: value for name, value in names.items() if name not in arguments}
            stops += [(guard, False) for guard in _stopping(node.body, known, vllm)]
    lines = text.splitlines()
    return tuple(
        (VersionGuard(Place(path, node.lineno, node.col_offset + 1, ""), lines[node.lineno - 1].strip()), imported)
        for node, imported in stops
    )


def _stopping(body: list[ast.stmt], names: dict[str, Any], vllm: str) -> Iterator[ast.stmt]:
    """Yield the statements of a body that stop. names: what is known of the version by name, added to."""
    for statement in body:
        try:
            if isinstance(statement, ast.ImportFrom) and statement.module in _OF_VLLM:
                names |= {alias.asname or alias.name: vllm for alias in statement.names if alias.name == "__version__"}
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                names.pop(statement.targets[0].id, None)
                names[statement.targets[0].id] = _value(statement.value, names, vllm)
            elif isinstance(statement, ast.Assert) and not _holds(statement.test, names, vllm):
                yield statement
            elif isinstance(statement, ast.If):
                taken = statement.body if _holds(statement.test, names, vllm) else statement.orelse
                raised = [step for step in taken if isinstance(step, ast.Raise)]
                yield from raised or _stopping(taken, names, vllm)
        except (_NoGuardError, InvalidVersion, TypeError, KeyError):
            continue


def _holds(test: ast.expr, names: Mapping[str, Any], vllm: str) -> bool:
    """Return whether a comparison of vLLM's version holds. Raises _NoGuardError if a test is anything else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return not _holds(test.operand, names, vllm)
    if isinstance(test, ast.BoolOp):
        parts = [_holds(part, names, vllm) for part in test.values]
        return all(parts) if isinstance(test.op, ast.And) else any(parts)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "startswith":
        if _value(test.func.value, names, vllm) != vllm or len(test.args) != 1:
            raise _NoGuardError
        return vllm.startswith(_value(test.args[0], names, vllm))
    if not isinstance(test, ast.Compare):
        raise _NoGuardError
    if len(test.ops) > 1:
        operands = [test.left, *test.comparators]
        links = zip(operands, test.ops, operands[1:], strict=False)
        return all(_holds(ast.Compare(left, [op], [right]), names, vllm) for left, op, right in links)
    left, right = _value(test.left, names, vllm), _value(test.comparators[0], names, vllm)
    if not {vllm, Version(vllm)}.intersection((left, *right) if isinstance(right, tuple) else (left, right)):
        raise _NoGuardError
    return _COMPARED[type(test.ops[0])](left, right)


def _value(node: ast.expr, names: Mapping[str, Any], vllm: str) -> Any:
    """Return a version or a text that is known. Raises _NoGuardError."""
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return tuple(_value(child, names, vllm) for child in node.elts)
    if isinstance(node, ast.Attribute) and ast.unparse(node) == "vllm.__version__":
        return vllm
    if isinstance(node, ast.Call) and len(node.args) == 1:
        function = ast.unparse(node.func).rpartition(".")[2]
        given = _value(node.args[0], names, vllm)
        if function in _MADE:
            return Version(given)
        if given == "vllm" and "version" in function:
            return vllm
    raise _NoGuardError
