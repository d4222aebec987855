"""What a program passes to the function that builds its engine: literals of the only call, and values of the Hydra
config that the program starts from.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.hydra_program import config_named_in
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.python_text import parse
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

_KEY = re.compile(r"(\w+)\.([\w.]+)")
_HYDRA = "hydra.main"


def passed(files: Sequence[Source], call: "Call", arguments: Mapping[str, Node]) -> dict[str, Node]:
    """Return the arguments of an engine's call, with what is passed to the function around it in place of its names.

    files: that of the call, and programs that import it.
    """
    if not any(isinstance(node.value, Unknown) for node in arguments.values()):
        return dict(arguments)
    given = {**dict(_literals(files, call)), **dict(_configured(files, call, arguments))}
    # The place is that of the engine's argument: there it is removed or set.
    return {
        name: replace(node, value=given[node.text]) if isinstance(node.value, Unknown) and node.text in given else node
        for name, node in arguments.items()
    }


def _literals(files: Sequence[Source], call: "Call") -> Iterator[tuple[str, Any]]:
    """Yield the parameters of the function around a call, with what its only call in the programs gives them."""
    makers = [(name, function) for name, function in _functions(parse(files[0].text)) if function.name == call.function]
    # A program that imports nothing of the engine may be a module that others call.
    if len(makers) != 1 or len(files) == 1:
        return
    ((name, function),) = makers
    calls = [made for file in files for made in file.calls((name,))]
    if len(calls) != 1 or calls[0].open:
        return
    parameters = [parameter.arg for parameter in function.args.args][name != function.name :]
    rebound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    given = dict(zip(parameters, calls[0].positional, strict=False)) | calls[0].arguments
    yield from ((parameter, given[parameter].value) for parameter in parameters if parameter in given.keys() - rebound)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a module by what calls them: a constructor by its class."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            functions = (part for part in node.body if isinstance(part, ast.FunctionDef))
            yield from ((node.name, function) for function in functions if function.name == "__init__")


def _configured(files: Sequence[Source], call: "Call", arguments: Mapping[str, Node]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that a Hydra config has a value for; open if the program hands the config on."""
    program = next((file for file in files if _HYDRA in file.text), None)
    name = config_named_in(program.text) if program is not None else None
    config = program.neighbour(name) if program is not None and name is not None else None
    whole = composed(config) if config is not None and not config.outside else None
    if program is None or whole is None:
        return
    starts = {
        function.args.args[0].arg for _, function in _functions(parse(program.text))
        if function.name == call.function and function.args.args
        and any(_HYDRA in ast.unparse(mark) for mark in function.decorator_list)
    }  # fmt: skip
    for node in arguments.values():
        key = _KEY.fullmatch(node.text)
        value = whole.root.get(*key[2].split(".")) if key is not None else None
        if key is None or value is None or value.refers:
            continue
        if program is files[0] and key[1] in starts:
            yield node.text, value.value
        elif isinstance(node.value, Unknown):
            reason = f"{node.value.reason}: {value.place.path}:{value.place.line} may decide it"
            yield node.text, replace(node.value, reason=reason)
