"""Options of a program's own command line, and their defaults: `parser.add_argument("--tp", default=2)`.

Known are argparse, and dataclasses of the file that Hugging Face's parser fills. What the command line says stands in
no file: the default is what a reader of the file takes for it, and whoever uses it says so.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

_PARSES = {"parse_args", "parse_known_args"}
_FILLS = {"parse_args_into_dataclasses", "parse_args_and_config"}
_FLAGS = {"store_true": False, "store_false": True}


@dataclass(frozen=True)
class Options:
    """holders: variables that hold parsed options, each with the defaults of its own; None for one without a default,
    or with two.
    """

    holders: Mapping[str, Mapping[str, ast.expr | None]] = field(default_factory=dict)

    def default(self, holder: str, name: str) -> ast.expr | None:
        """What an option is where the command line does not say it; None where it has to, or nothing is known."""
        return self.holders.get(holder, {}).get(name)


@lru_cache(maxsize=8)
def options_of(tree: ast.Module) -> Options:
    """The options of one file."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.Attribute) and node.attr in _PARSES | _FILLS for node in nodes):
        return Options()
    arguments = _arguments(nodes)
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    makers = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _parses(node)}
    holders: dict[str, dict[str, ast.expr | None]] = {}
    filled = [one for node in nodes if isinstance(node, ast.Call) for one in _dataclasses(node)]
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
        if _is_parsed(node.value, makers) and isinstance(first, ast.Name):
            holders[first.id] = dict(arguments)
        elif _calls(node.value, _FILLS):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            for name, cls in zip(names, filled, strict=False):
                if isinstance(name, ast.Name) and cls in classes:
                    holders[name.id] = dict(_fields(classes[cls], classes))
    for node in nodes:  # args.name = ...: no default any more
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            holders.get(node.value.id, {}).pop(node.attr, None)
    return Options(holders)


def _arguments(nodes: list[ast.AST]) -> dict[str, ast.expr | None]:
    found: dict[str, ast.expr | None] = {}
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if node.func.attr == "set_defaults":
            found |= dict.fromkeys((name for name in given if name is not None), None)
        elif node.func.attr == "add_argument" and (name := _destination(node, given)):
            default = _default(given)
            same = name not in found or _text(found[name]) == _text(default)
            found[name] = default if same else None
    return found


def _destination(call: ast.Call, given: Mapping[str | None, ast.expr]) -> str:
    written = given.get("dest", None)
    if isinstance(written, ast.Constant):
        return str(written.value)
    spelt = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    long = next((one for one in spelt if one.startswith("--")), "")
    return long.removeprefix("--").replace("-", "_")


def _default(given: Mapping[str | None, ast.expr]) -> ast.expr | None:
    """The default, where it stands for itself: argparse gives a text to `type`."""
    action, default, kind = given.get("action"), given.get("default"), given.get("type")
    if default is not None:
        is_text = isinstance(default, ast.Constant) and isinstance(default.value, str)
        turned = is_text and kind is not None and ast.unparse(kind) != "str"
        return None if turned else default
    flag = _FLAGS.get(str(action.value)) if isinstance(action, ast.Constant) else None
    return ast.copy_location(ast.Constant(flag), action) if flag is not None and action is not None else None


def _parses(function: ast.AST) -> bool:
    return any(_calls(node, _PARSES) for node in ast.walk(function)) and any(
        isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function)
    )


def _is_parsed(value: ast.expr, makers: set[str]) -> bool:
    if isinstance(value, ast.Subscript):
        return _is_parsed(value.value, set())
    return _calls(value, _PARSES) or (isinstance(value, ast.Call) and getattr(value.func, "id", "") in makers)


def _calls(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def _dataclasses(call: ast.Call) -> Iterator[str]:
    """`HfArgumentParser((A, B))`, `TrlParser(A)`."""
    if getattr(call.func, "id", "") in {"HfArgumentParser", "TrlParser"}:
        for argument in [*call.args, *(one.value for one in call.keywords if one.arg == "dataclass_types")]:
            elements = argument.elts if isinstance(argument, ast.Tuple | ast.List) else [argument]
            yield from (one.id if isinstance(one, ast.Name) else "" for one in elements)


def _fields(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef], deep: int = 8) -> Iterator[tuple[str, ast.expr]]:
    for base in cls.bases:
        if isinstance(base, ast.Name) and base.id in classes and deep:
            yield from _fields(classes[base.id], classes, deep - 1)
    for line in cls.body:
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None):
            continue
        value: ast.expr | None = line.value
        if isinstance(value, ast.Call):
            value = next((one.value for one in value.keywords if one.arg == "default"), None)
        if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            yield line.target.id, value


def _text(node: ast.expr | None) -> str:
    return ast.unparse(node) if node is not None else ""
