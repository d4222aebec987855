"""Engine arguments that this machine can hold, and a sentence for each that it cannot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.vllm.milestones import V1_ON_CPU
from rlaudit.vllm.resolution.block_size import smallest_cpu_block

# What the small prompts and completions of an ablation need; a config's context of 32k would only fill the KV cache.
CONTEXT_ON_CPU = 1024
# Tokens of a step, and so of the longest prompt: 0.18.1 on CPU cannot cut a seeded one into chunks.
STEP_ON_CPU = 8192
# What a single engine on this machine does without, and so cannot show.
_OF_THE_RECIPE = "the recipe has another key for it"
_OF_A_SERVER = "of the server around the engine; it changes no logprob"
_OF_REPLICAS = (
    "one replica runs. Replicas of a dense model compute the same thing; a mixture of experts is spread over them, "
    "and its other sums are not seen"
)
NOT_FOR_ONE_ENGINE: Mapping[str, str] = {
    **dict.fromkeys(("model", "tokenizer"), ""),
    **dict.fromkeys(("revision", "trust_remote_code"), _OF_THE_RECIPE),
    **dict.fromkeys(("hf_token", "download_dir"), "how the checkpoint is fetched; it changes no logprob"),
    **dict.fromkeys(
        (
            "served_model_name", "disable_log_stats", "disable_log_requests", "enable_log_requests", "api_server_count",
            "disable_frontend_multiprocessing", "return_tokens_as_token_ids",
        ),
        _OF_A_SERVER,
    ),
    "limit_mm_per_prompt": "prompts here are text",
    **dict.fromkeys(
        (
            "data_parallel_size", "data_parallel_size_local", "data_parallel_address", "data_parallel_rpc_port",
            "data_parallel_backend", "data_parallel_rank", "data_parallel_start_rank",
        ),
        _OF_REPLICAS,
    ),
    "enable_expert_parallel": "experts stay on one GPU here; the kernels and sums of expert parallelism are not seen",
    **dict.fromkeys(
        ("distributed_executor_backend", "nnodes", "node_rank", "master_addr", "master_port"),
        "vLLM starts its workers by itself here; what only several nodes or Ray do is not seen (NaN from a race "
        "between pipeline stages, NeMo-RL issue 2180)",
    ),
    "enable_sleep_mode": "the engine never sleeps here; what waking does to weights is not seen (stale ones in TRL "
    "issue 5312 and vLLM issue 29341, corrupt ones in NeMo-RL issue 2631)",
    "worker_extension_cls": "the framework's code is not here; what it changes in the model (a float32 head, say) is "
    "not seen, except through the factor fp32-head",
    "worker_cls": "the framework's code is not here; what it changes in the model is not seen",
    "weight_transfer_config": "weights are loaded once here; `rlaudit ablate weight-update` is about updates",
    "load_format": "the checkpoint is read as it is; a format that quantises, or weights that only the trainer sends, "
    "are not seen",
    "kv_transfer_config": "keys and values stay in one engine here; what moving them changes is not seen",
}  # fmt: skip
# What V0 does on a CPU with intel_extension_for_pytorch only, which has no release for most of them.
V0_NEEDS_IPEX = ("enable_chunked_prefill", "enable_prefix_caching")
OF_A_GPU = ("gpu_memory_utilization", "cpu_offload_gb", "swap_space", "kv_cache_dtype", "attention_backend")
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size")


@dataclass(frozen=True)
class Limits:
    """What the accelerator can hold."""

    cpu: bool
    gpus: int
    # Tokens of a completion, so that an ablation takes ten minutes at most.
    max_tokens: int
    # Tokens of all completions of an arm that replays a recording.
    replayed_tokens: int
    # Tokens of a prompt and its completion.
    context: int = CONTEXT_ON_CPU

    @classmethod
    def of(cls, accelerator: Accelerator) -> "Limits":
        """Return the limits of this machine."""
        on_cpu = accelerator.kind == "cpu"
        gpus = 0 if on_cpu else len(accelerator.devices)
        return cls(on_cpu, gpus, 32 if on_cpu else 128, 2048 if on_cpu else 1 << 17)


def fit_engine_args(
    written: Mapping[str, Any], limits: Limits, version: Version
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments as they can run here under one vLLM release, and what was changed."""
    changes = [
        f"{name}={written[name]}: left out; {NOT_FOR_ONE_ENGINE[name]}"
        for name in sorted(NOT_FOR_ONE_ENGINE.keys() & written.keys() - {"model", "tokenizer"})
    ]
    args = {name: value for name, value in written.items() if name not in NOT_FOR_ONE_ENGINE}
    for name in PARALLEL:
        size = args.get(name, 1)
        if isinstance(size, int) and size > max(1, limits.gpus):
            changes.append(f"{name}={size}: GPUs on this machine: {limits.gpus}; 1 is used")
            args[name] = 1
    if limits.cpu:
        args, cpu_changes = _on_cpu(args, limits.context, version)
        changes += cpu_changes
    return args, tuple(changes)


def _on_cpu(args: dict[str, Any], context: int, version: Version) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments of a CPU engine, and what was changed."""
    forced = {
        "max_model_len": (context, "prompts and completions here are short"),
        "max_num_batched_tokens": (STEP_ON_CPU, "0.18.1 on CPU cannot cut a seeded prompt into chunks"),
        "enforce_eager": (True, "compiling at every start takes longer than sampling here"),
        "block_size": (
            smallest_cpu_block(version),
            f"the default of vLLM {version} is longer than the prompts' shared prefix, so nothing would be cached",
        ),
    }
    changes = [f"{name}={args.pop(name)}: of a GPU; left out on this CPU" for name in OF_A_GPU if name in args]
    if version < V1_ON_CPU:
        changes += [
            f"{name}=True: V0 needs intel_extension_for_pytorch for it on a CPU; off here"
            for name in V0_NEEDS_IPEX
            if args.pop(name, None) is True
        ]
    for name, (value, why) in forced.items():
        if args.get(name) != value:
            before = f"{name}={args[name]}" if name in args else f"{name} (not set)"
            changes.append(f"{before}: {value} on this CPU ({why})")
        args[name] = value
    return args, changes
