"""What a file asks of a module of vLLM by attribute: `parallel_state.get_x()`, after `from vllm.distributed import
parallel_state`, also where a file of its own package hands the module on.
"""

import ast
from collections.abc import Callable, Mapping

from packaging.version import Version

from rlaudit.configs.syntax.python_program import program_of
from rlaudit.vllm.importable import gone_name, is_module

# Where a name comes from that a file imports from a module of the tree: "" where that is not known.
Origin = Callable[[str, str], str]


def modules_of(tree: ast.Module, origin: Origin) -> dict[str, str]:
    """Modules of vLLM by the names that they have in a file and that it gives to nothing else."""
    found: dict[str, str] = {}
    for name, home in program_of(tree).imports.items():
        module, _, last = home.rpartition(".")
        path = home if home.partition(".")[0] == "vllm" else origin(module, last)
        if is_module(path):
            found[name] = path
    if found:
        stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        found = {name: path for name, path in found.items() if name not in stored}
    return found


def gone_of_module(node: ast.Attribute, modules: Mapping[str, str], vllm: Version) -> str | None:
    """What is said of `module.name` where a release has no such name there."""
    module = modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
    if module is None or not isinstance(node.ctx, ast.Load):
        return None
    gone = gone_name(module, node.attr, vllm)
    if gone is None or gone.first is None:
        return None
    homes = f"; there is one in {' and '.join(gone.homes)}" if gone.homes else ""
    return f"takes {node.attr} of {module}, which vLLM {vllm} does not have there: {gone.said(vllm)}{homes}"
