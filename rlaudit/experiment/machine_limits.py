"""Engine arguments that this machine can hold, and a sentence for each that it cannot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.engines.accelerator import Accelerator

# What the small prompts and completions of an ablation need; a config's context of 32k would only fill the KV cache.
CONTEXT_ON_CPU = 1024
# Workers, network and life cycle of a training run: nothing of it changes a logprob of one engine on one machine.
NOT_FOR_ONE_ENGINE = frozenset({
    "model", "tokenizer", "served_model_name", "distributed_executor_backend", "worker_extension_cls", "worker_cls",
    "enable_sleep_mode", "weight_transfer_config", "disable_log_stats", "disable_log_requests", "enable_log_requests",
    "data_parallel_size", "data_parallel_size_local", "data_parallel_address", "data_parallel_rpc_port",
    "data_parallel_backend", "data_parallel_rank", "data_parallel_start_rank", "enable_expert_parallel", "nnodes",
    "node_rank", "master_addr", "master_port", "load_format", "revision", "hf_token", "download_dir",
    "trust_remote_code", "limit_mm_per_prompt", "disable_frontend_multiprocessing", "api_server_count",
    "kv_transfer_config", "return_tokens_as_token_ids",
})  # fmt: skip
# What V0 does on a CPU with intel_extension_for_pytorch only, which has no release for most of them.
V0_NEEDS_IPEX = ("enable_chunked_prefill", "enable_prefix_caching")
FIRST_V1_ON_CPU = Version("0.9.2")
LAST_WITH_SMALL_BLOCKS = Version("0.18.1")
OF_A_GPU = ("gpu_memory_utilization", "cpu_offload_gb", "swap_space", "kv_cache_dtype", "attention_backend")
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size")


@dataclass(frozen=True)
class Limits:
    """What the accelerator can hold. max_tokens: length of a completion that keeps an ablation within ten minutes."""

    cpu: bool
    gpus: int
    max_tokens: int

    @classmethod
    def of(cls, accelerator: Accelerator) -> "Limits":
        """The limits of this machine."""
        on_cpu = accelerator.kind == "cpu"
        return cls(on_cpu, 0 if on_cpu else len(accelerator.devices), 32 if on_cpu else 128)


def fit_engine_args(
    written: Mapping[str, Any], limits: Limits, version: Version
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments as they can run here under one vLLM release, and what was changed."""
    said = [
        f"{name}={written[name]}: belongs to a training run's processes, not to one engine; left out"
        for name in sorted(NOT_FOR_ONE_ENGINE & written.keys() - {"model", "tokenizer"})
    ]
    kept = {name: value for name, value in written.items() if name not in NOT_FOR_ONE_ENGINE}
    for name in PARALLEL:
        size = kept.get(name, 1)
        if isinstance(size, int) and size > max(1, limits.gpus):
            said.append(f"{name}={size}: GPUs on this machine: {limits.gpus}; 1 is used")
            kept[name] = 1
    if limits.cpu:
        kept, more = _on_cpu(kept, version)
        said += more
    return kept, tuple(said)


def _on_cpu(kept: dict[str, Any], version: Version) -> tuple[dict[str, Any], list[str]]:
    """A CPU engine: eager, small blocks so that short prompts can be cached, and a round within one step."""
    # V0 takes blocks of 16 only there, 0.32.0 multiples of 32 only, 0.18.1 both.
    block_size = 16 if version <= LAST_WITH_SMALL_BLOCKS else 32
    forced = {
        "max_model_len": (CONTEXT_ON_CPU, "prompts and completions here are short"),
        "max_num_batched_tokens": (8192, "0.18.1 on CPU cannot cut a seeded prompt into chunks"),
        "enforce_eager": (True, "compiling at every start takes longer than sampling here"),
        "block_size": (block_size, "larger than the prompts' shared prefix otherwise, and nothing would be cached"),
    }
    said = [f"{name}={kept.pop(name)}: of a GPU; left out on this CPU" for name in OF_A_GPU if name in kept]
    if version < FIRST_V1_ON_CPU:
        said += [
            f"{name}=True: V0 needs intel_extension_for_pytorch for it on a CPU; off here"
            for name in V0_NEEDS_IPEX
            if kept.pop(name, None) is True
        ]
    for name, (value, why) in forced.items():
        if kept.get(name) != value:
            before = f"{name}={kept[name]}" if name in kept else f"{name} (not set)"
            said.append(f"{before}: {value} on this CPU ({why})")
        kept[name] = value
    return kept, said
