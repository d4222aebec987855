"""Further engines of vLLM in a training config: a reward model's, a judge's or a teacher's.

Their settings are listed with the framework's own options, with a sentence that no more is read of them.
"""

from collections.abc import Iterator

from rlaudit.configs.draft import Draft, known
from rlaudit.configs.syntax.node import Node

_NAMES_AN_ENGINE = ("strategy_name", "name", "backend", "generation_backend")
# Two of these together are an engine's.
_SIGNS = {
    "gpu_memory_utilization", "tensor_parallel_size", "tensor_model_parallel_size", "enforce_eager", "max_model_len",
    "strategy_config", "vllm_cfg", "vllm_serve_kwargs",
}  # fmt: skip
_DEEPEST = 6


def take_second_engines(draft: Draft, root: Node, *own: str) -> None:
    """List the engines of a config outside of `own`, the dotted paths of the one that is read."""
    for path, node in _engines(root, "", own, 0):
        draft.list_options(node, *(key for key, _ in node.items()))
        for key in dict(node.items()):
            for name in [one for one in draft.options if one == key or one.startswith(f"{key}.")]:
                draft.options[f"{path}.{name}"] = draft.options.pop(name)
        draft.not_seen.append(
            f"{path}: an engine of its own, as of a judge or a teacher; its settings are listed, not judged"
        )


def _engines(node: Node, path: str, own: tuple[str, ...], depth: int) -> Iterator[tuple[str, Node]]:
    for key, child in node.items():
        below = f"{path}.{key}" if path else key
        if below in own or not isinstance(child.value, dict) or depth > _DEEPEST:
            continue
        if _is_engine(child):
            yield below, child
        else:
            yield from _engines(child, below, own, depth + 1)


def _is_engine(node: Node) -> bool:
    says = any(known(node.get(key)) == "vllm" for key in _NAMES_AN_ENGINE)
    held = sum(node.get(key) is not None for key in _SIGNS)
    return held >= 1 if says or node.get("vllm_serve_kwargs") is not None else held >= 3
