"""What the objects have that programs get of a release: methods, properties and attributes of engines."""

import ast
from collections.abc import Iterator

from rlaudit.vllm.extract.modules import Module, Tree
from rlaudit.vllm.importable import ANYTHING, SOMETIMES

# Object -> the file and class of its first release, and of the engine that came after it.
_CLASSES = {
    "LLM": (("vllm/entrypoints/llm.py", "LLM"),),
    "LLMEngine": (("vllm/engine/llm_engine.py", "LLMEngine"), ("vllm/v1/engine/llm_engine.py", "LLMEngine")),
    "AsyncLLMEngine": (
        ("vllm/engine/async_llm_engine.py", "AsyncLLMEngine"), ("vllm/v1/engine/async_llm.py", "AsyncLLM"),
    ),
    "AsyncLLM": (("vllm/v1/engine/async_llm.py", "AsyncLLM"),),
    "SamplingParams": (("vllm/sampling_params.py", "SamplingParams"),),
}  # fmt: skip


def objects(tree: Tree) -> dict[str, frozenset[str]]:
    """Attributes by object. SOMETIMES before one that is there under a condition only; where V0 and V1 both may be
    what a name stands for, what either has.
    """
    found: dict[str, frozenset[str]] = {}
    for name, places in _CLASSES.items():
        classes = [one for place in places if (one := _class(tree, *place)) is not None]
        if classes:
            names = {attribute for one in classes for attribute in attributes(tree, *one)}
            found[name] = frozenset(one for one in names if one.removeprefix(SOMETIMES) == one or one[1:] not in names)
    return found


def _class(tree: Tree, path: str, name: str) -> tuple[Module, ast.ClassDef] | None:
    module = tree.module(path)
    own = [node for node in module.tree.body if getattr(node, "name", "") == name] if module is not None else []
    if module is not None and own and isinstance(own[0], ast.ClassDef):
        return module, own[0]  # whatever the name is bound to later: 0.8.5 takes V1's where a variable asks for it
    found = tree.find(name, module) if module is not None else None
    while found is not None and isinstance(found[1], ast.Name):  # AsyncLLMEngine = AsyncLLM
        found = tree.find(found[1].id, found[0])
    return (found[0], found[1]) if found is not None and isinstance(found[1], ast.ClassDef) else None


def attributes(tree: Tree, module: Module, cls: ast.ClassDef) -> Iterator[str]:
    """Yield what a class and its bases have: methods, fields, and what methods set of `self`."""
    for home, base in tree.bases(module, cls):
        yield from attributes(tree, home, base)
    for node in cls.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (ANYTHING,) if node.name == "__getattr__" else _public(node.name)
            yield from _set(node.body, always=True)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _public(getattr(target, "id", "_"))


def _set(body: list[ast.stmt], *, always: bool) -> Iterator[str]:
    """What a method sets of `self`; in both branches is always."""
    for node in body:
        match node:
            case ast.Assign() | ast.AnnAssign():
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for one in ast.walk(target):
                        if (
                            isinstance(one, ast.Attribute)
                            and isinstance(one.value, ast.Name)
                            and one.value.id == "self"
                        ):
                            yield from (name if always else SOMETIMES + name for name in _public(one.attr))
            case ast.If():
                then, other = (set(_set(part, always=always)) for part in (node.body, node.orelse))
                yield from then & other
                for name in then ^ other:
                    yield name if name.startswith(SOMETIMES) else SOMETIMES + name
            case _:
                for part in ("body", "orelse", "finalbody"):
                    yield from _set(getattr(node, part, []), always=always)


def _public(name: str) -> Iterator[str]:
    if not name.startswith("_"):
        yield name
