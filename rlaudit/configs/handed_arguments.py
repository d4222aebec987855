"""What a program hands to a function of another file, in place of that function's own parameters."""

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.configs.framework_source.bindings import literal, nodes_in
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

Function = ast.FunctionDef | ast.AsyncFunctionDef


def with_handed(call: "Call", helper: Source, program: Source) -> "Call":
    """A call in a function of `helper`, with what the program hands to that function; as it is where it calls it in
    several ways, or where the function gives a parameter another value.
    """
    given = _given(call, helper, program)
    if not given:
        return call
    arguments = {name: _one(node, given) for name, node in call.arguments.items()}
    return replace(call, arguments=arguments, positional=tuple(_one(node, given) for node in call.positional))


def _one(node: Node, given: dict[str, Node]) -> Node:
    return given.get(node.text, node) if isinstance(node.value, Unknown) else node


def _given(call: "Call", helper: Source, program: Source) -> dict[str, Node]:
    name = call.owner if call.function == "__init__" else call.function
    function = _function(helper, name, call)
    calls = program.calls((name,)) if name else ()
    if function is None or len(calls) != 1 or calls[0].open:
        return {}
    (made,) = calls
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][bool(call.owner) :]
    given = {**_defaults(function, call), **dict(zip(names, made.positional, strict=False)), **made.arguments}
    changed = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {parameter: node for parameter, node in given.items() if parameter not in changed}


def _function(helper: Source, name: str, call: "Call") -> Function | None:
    """The function, or the constructor of the class, of a name; None where several have it."""
    homes = [node for node in nodes_in(helper) if isinstance(node, ast.ClassDef) and node.name == name]
    inside = homes[0].body if call.function == "__init__" and len(homes) == 1 else nodes_in(helper)
    found = [node for node in inside if isinstance(node, Function) and node.name == call.function]
    return found[0] if len(found) == 1 else None


def _defaults(function: Function, call: "Call") -> dict[str, Node]:
    """Parameters that have a default, with it; the place is that of the call which takes them."""
    ordered = [*function.args.posonlyargs, *function.args.args]
    pairs = [
        *zip(reversed(ordered), reversed(function.args.defaults), strict=False),
        *(
            (one, value)
            for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            if value
        ),
    ]
    found = {one.arg: literal(value) for one, value in pairs}
    return {name: Node(value, call.place, call.place, name) for name, value in found.items()
            if isinstance(value, str | int | float | bool | None)}  # fmt: skip
