"""Where prime-rl keeps things: three layouts of the same sections, told apart by their tables.

flat      until spring 2026: [inference.model], [inference.parallel] and typed fields; the rest in vllm_extra
vllm      since summer 2026: everything under [inference.vllm] with vLLM's own names, unknown ones passed through
A run's file has the sections `inference`, `orchestrator`, `trainer`; a file of one entry point has one at its root.
Source: prime-rl packages/prime-rl-configs/src/prime_rl/configs/inference.py at 01496f7 and at 559b447.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rlaudit.configs.syntax.node import Node

# Fields of the flat layout below `inference` -> engine argument.
FLAT: Mapping[str, str] = {
    "model.dtype": "dtype",
    "model.max_model_len": "max_model_len",
    "model.enforce_eager": "enforce_eager",
    "model.trust_remote_code": "trust_remote_code",
    "model.rope_scaling": "rope_scaling",
    "parallel.tp": "tensor_parallel_size",
    "parallel.dp": "data_parallel_size",
    "data_parallel_size_local": "data_parallel_size_local",
    "data_parallel_rpc_port": "data_parallel_rpc_port",
    "enable_lora": "enable_lora",
    "enable_prefix_caching": "enable_prefix_caching",
    "max_loras": "max_loras",
    "max_cpu_loras": "max_cpu_loras",
    "max_lora_rank": "max_lora_rank",
    "lora_target_modules": "lora_target_modules",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "enable_return_routed_experts": "enable_return_routed_experts",
    "enable_expert_parallel": "enable_expert_parallel",
    "all2all_backend": "all2all_backend",
    "enable_eplb": "enable_eplb",
    "enable_dbo": "enable_dbo",
    "seed": "seed",
    "quantization": "quantization",
}
# Sections of the API server and of the launcher: nothing of them reaches the engine.
LAUNCHER = {
    "server", "deployment", "slurm", "output_dir", "dry_run", "log", "router", "backend_port", "experimental",
    "api_server_count", "model", "parallel", "vllm", "vllm_extra", "env_vars", "weight_broadcast",
    "kv_cache_offload", "enable_fp32_lm_head", "enable_fp32_router_logits", "use_deep_gemm", "use_pd_kv_transfer",
    "enable_return_sampling_mask", "enable_return_sampling_mask_logprobs", "sampling",
}  # fmt: skip
_INFERENCE_ONLY = {
    "vllm_extra", "enable_fp32_lm_head", "enable_fp32_router_logits", "use_deep_gemm", "kv_cache_offload",
    "weight_broadcast", "api_server_count",
}  # fmt: skip


# Of the orchestrator while inference was flat.
_OLD_ORCHESTRATOR = ("sampling", "rollouts_per_example", "env")


@dataclass(frozen=True)
class Layout:
    """The sections of one file; None where it has none. root: the file's root table, for shared tables."""

    root: Node
    inference: Node | None
    orchestrator: Node | None
    trainer: Node | None

    @property
    def passes_through(self) -> bool | None:
        """Whether [inference.vllm] is used; None where neither layout shows."""
        if self.inference is None:
            return None
        train = self.orchestrator.get("train", "source") if self.orchestrator is not None else None
        if self.inference.get("vllm") is not None or train is not None:
            return True
        if self.orchestrator is not None and any(self.orchestrator.get(key) is not None for key in _OLD_ORCHESTRATOR):
            return False
        flat = any(self.inference.get(*path.split(".")) is not None for path in FLAT)
        return False if flat or self.inference.get("vllm_extra") is not None else None


def layout(root: Node | None) -> Layout | None:
    """The sections of a prime-rl TOML; None for any other file."""
    if root is None or not isinstance(root.value, dict):
        return None
    sections = {name: _table(root, name) for name in ("inference", "orchestrator", "trainer")}
    if sections["orchestrator"] is not None and (sections["inference"] is not None or sections["trainer"] is not None):
        return Layout(root, sections["inference"], sections["orchestrator"], sections["trainer"])
    if sections["inference"] is not None and (_is_inference(sections["inference"]) or sections["trainer"] is not None):
        return Layout(root, sections["inference"], None, sections["trainer"])
    alone = all(section is None for section in sections.values())
    if alone and _is_inference(root):
        return Layout(root, root, None, None)
    return Layout(root, None, root, None) if alone and _is_orchestrator(root) else None


def _is_inference(table: Node) -> bool:
    keys = set(dict(table.items()))
    if _table(table, "vllm") is not None:
        return bool(keys & (_INFERENCE_ONLY | {"server", "deployment", "router", "slurm", "log"})) or len(keys) == 1
    parallel = table.get("parallel")
    sized = parallel is not None and bool({"tp", "dp"} & set(dict(parallel.items())))
    return _table(table, "model") is not None and (sized or bool(keys & _INFERENCE_ONLY))


def _is_orchestrator(table: Node) -> bool:
    """`[sampling]` beside `[[env]]`, or `[train.sampling]` beside sources, with a group size."""
    grouped = table.get("rollouts_per_example") or table.get("group_size") or table.get("batch_size")
    sampling = _table(table, "sampling") or table.get("train", "sampling")
    environments = (
        table.get("env") or table.get("environment") or table.get("train", "env") or table.get("train", "source")
    )
    return grouped is not None and sampling is not None and environments is not None


def _table(root: Node, name: str) -> Node | None:
    node = root.get(name)
    return node if node is not None and isinstance(node.value, dict) else None
