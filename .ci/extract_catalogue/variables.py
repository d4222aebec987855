"""The environment variables of a release, from its table of readers."""

import ast
from typing import Any

from extract_catalogue.modules import Tree
from extract_catalogue.reader import BEYOND, unset_value
from extract_catalogue.reduce import Expression, as_json, reduced

_FILES = ("vllm/envs.py", "vllm/envs/__init__.py")


def variables(tree: Tree) -> dict[str, list[Any]]:
    """Each variable as [default, kind, line, *choices].

    The default is what its reader returns when the variable is not set. The annotated one beside the table is for type
    checkers and has been wrong (0.18.1: VLLM_DP_MASTER_IP); it is taken where the reader is beyond reading and no
    function of the release. Raises LookupError when the release has no table.
    """
    module = next((found for path in _FILES if (found := tree.module(path)) is not None), None)
    table = module.bound.get("environment_variables") if module is not None else None
    if module is None or not isinstance(table, ast.Dict):
        raise LookupError("vllm/envs.py has no environment_variables table")
    annotated = _annotated(module.tree)
    readers = {
        str(key.value): (key.lineno, reader)
        for key, reader in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant)
    }

    def unset(name: str) -> Any:
        return unset_value(readers[name][1], unset) if name in readers else BEYOND

    rows: dict[str, list[Any]] = {}
    for name, (line, reader) in readers.items():
        node = annotated.get(name)
        kind = " ".join(ast.unparse(node.annotation).split()) if node is not None else ""
        default = unset(name)
        if default is BEYOND:
            default = Expression(" ".join(ast.unparse(reader).split()))
        own = {inner.id for inner in ast.walk(reader) if isinstance(inner, ast.Name) and inner.id in module.bound}
        if isinstance(default, Expression) and not own and node is not None and node.value is not None:
            default = reduced(tree, node.value, module)
        rows[name] = [as_json(default), kind, f"{module.path}:{line}", *_choices(reader)]
    return rows


def _annotated(tree: ast.Module) -> dict[str, ast.AnnAssign]:
    return {
        node.target.id: node
        for block in tree.body
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in block.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _choices(reader: ast.expr) -> list[str]:
    """The list in `env_with_choices(name, default, [..])`."""
    if isinstance(reader, ast.Call) and ast.unparse(reader.func).startswith("env_") and len(reader.args) > 2:
        listed = reader.args[2]
        if isinstance(listed, ast.List):
            return [str(node.value) for node in listed.elts if isinstance(node, ast.Constant)]
    return []
