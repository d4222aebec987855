"""Parameters of the methods that a training loop calls: pausing, weight updates, cache resets, sleeping."""

import ast
from typing import Any

from extract_catalogue.modules import Tree
from extract_catalogue.reduce import REQUIRED, as_json, reduced

METHODS = (
    "abort", "collective_rpc", "compute_weight_checksums", "finish_weight_update", "generate", "get_weight_version",
    "init_weight_transfer_engine", "is_paused", "is_sleeping", "pause_generation", "reset_encoder_cache",
    "reset_mm_cache", "reset_prefix_cache", "resume_generation", "shutdown_weight_transfer_engine", "sleep",
    "start_draft_weight_update", "start_weight_update", "update_weight_version", "update_weights", "wake_up",
)  # fmt: skip
# prefix in the catalogue, file, class
_CLASSES = (
    ("", "vllm/v1/engine/async_llm.py", "AsyncLLM"),
    ("AsyncLLMEngine.", "vllm/engine/async_llm_engine.py", "AsyncLLMEngine"),
    ("LLM.", "vllm/entrypoints/llm.py", "LLM"),
)


def signatures(tree: Tree) -> dict[str, dict[str, Any]]:
    """`pause_generation` -> {parameter: default}, for AsyncLLM; the V0 engine's and LLM's with their class's name."""
    found: dict[str, dict[str, Any]] = {}
    for prefix, path, name in _CLASSES:
        module = tree.module(path)
        cls = module.bound.get(name) if module is not None else None
        if module is None or not isinstance(cls, ast.ClassDef):
            continue
        for method in METHODS:
            defined = tree.method(method, module, cls)
            if defined is not None:
                home, function = defined
                arguments = function.args
                positional = [*arguments.posonlyargs, *arguments.args][1:]
                gap = len(positional) - len(arguments.defaults)
                defaults = [None] * gap + list(arguments.defaults) if gap >= 0 else list(arguments.defaults)
                pairs = [
                    *zip(positional, defaults, strict=False),
                    *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
                ]
                found[prefix + method] = {
                    argument.arg: as_json(REQUIRED if node is None else reduced(tree, node, home))
                    for argument, node in pairs
                }
    return found
