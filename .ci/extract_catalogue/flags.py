"""The command-line flags of a release: every spelling, and what each one sets."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from extract_catalogue.fields import is_boolean
from extract_catalogue.modules import FieldNode, Module, Tree

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Flag:
    """One `add_argument`: its spellings, what it sets, whether `--no-` exists, and the words it accepts."""

    spellings: tuple[str, ...]
    sets: str
    negated: bool
    choices: tuple[str, ...] = ()

    def names(self) -> Iterator[str]:
        """Every spelling without dashes in front."""
        for spelling in self.spellings:
            yield spelling.lstrip("-")
            if self.negated and spelling.startswith("--"):
                yield f"no-{spelling.lstrip('-')}"


def flags(tree: Tree, module: Module, function: AnyFunction) -> Iterator[Flag]:
    """Every flag that a function adds with spellings in its source; spellings built in a loop from a literal too."""
    configs = _config_arguments(function)
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            spellings = tuple(
                argument.value
                for argument in call.args
                if isinstance(argument, ast.Constant)
                and isinstance(argument.value, str)
                and argument.value.startswith("-")
            )
            if spellings:
                yield _flag(tree, module, call, spellings, configs)
            elif call.args and isinstance(call.args[0], ast.Name):
                for spelling in _looped(function, call):
                    yield Flag((spelling,), _destination((spelling,)), False)


def flags_of_fields(tree: Tree, fields: dict[str, FieldNode]) -> Iterator[Flag]:
    """The flags that vLLM makes of every field of a class."""
    for name, field in fields.items():
        yield Flag((f"--{name.replace('_', '-')}",), name, is_boolean(tree, field))


def _flag(
    tree: Tree, module: Module, call: ast.Call, spellings: tuple[str, ...], configs: dict[str, tuple[str, str]]
) -> Flag:
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    destination = given.get("dest")
    sets = str(destination.value) if isinstance(destination, ast.Constant) else _destination(spellings)
    if "action" in given:
        return Flag(spellings, sets, "BooleanOptional" in ast.unparse(given["action"]))
    spread = next((keyword.value for keyword in call.keywords if keyword.arg is None), None)
    field = _field_of(tree, module, spread, configs)
    listed = given.get("choices")
    choices = [node.value for node in listed.elts if isinstance(node, ast.Constant)] if (
        isinstance(listed, ast.List | ast.Tuple)
    ) else []  # fmt: skip
    return Flag(spellings, sets, field is not None and is_boolean(tree, field), tuple(map(str, choices)))


def _destination(spellings: tuple[str, ...]) -> str:
    long = next((spelling for spelling in spellings if spelling.startswith("--")), spellings[0])
    return long.lstrip("-").replace("-", "_")


def _config_arguments(function: AnyFunction) -> dict[str, tuple[str, str]]:
    """Variables that hold argparse settings: `x = get_kwargs(C)` -> (C, ""), `y = x["f"]` -> (C, "f")."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func, args=[cls, *_])) if (
                ast.unparse(func).split(".")[-1] == "get_kwargs"
            ):
                found[name] = (ast.unparse(cls), "")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name(id=held), slice=key)) if (
                held in found and isinstance(key, ast.Constant)
            ):
                found[name] = (found[held][0], str(key.value))
    return found


def _field_of(
    tree: Tree, module: Module, spread: ast.expr | None, configs: dict[str, tuple[str, str]]
) -> FieldNode | None:
    """The config field behind `**model_kwargs["seed"]`, `**seed_kwargs` or `**{**model_kwargs["seed"], ...}`."""
    if isinstance(spread, ast.Dict):
        inner = (value for key, value in zip(spread.keys, spread.values, strict=True) if key is None)
        spread = next(inner, None)
    cls, name = "", ""
    match spread:
        case ast.Subscript(value=ast.Name(id=held), slice=ast.Constant(value=str(key))) if held in configs:
            cls, name = configs[held][0], key
        case ast.Name(id=held) if held in configs:
            cls, name = configs[held]
    found = tree.find_class(cls, module) if cls else None
    return tree.fields(*found).get(name) if found is not None else None


def _looped(function: AnyFunction, call: ast.Call) -> Iterator[str]:
    """Spellings in the literal, or the variable that holds one, of the loop around a call."""
    for loop in ast.walk(function):
        if isinstance(loop, ast.For) and any(node is call for node in ast.walk(loop)):
            searched = [loop.iter]
            names = {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
            searched += [
                node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and any(ast.unparse(target) in names for target in node.targets)
            ]
            for node in (inner for part in searched for inner in ast.walk(part)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("--"):
                    yield node.value
