"""One name for every spelling of an engine argument: the field of vLLM's EngineArgs.

`--enable-prefix-caching`, `enable_prefix_caching`, `enablePrefixCaching` and `-tp` are spellings. `vllm/catalogue.py`
knows which version has the argument.
"""

import re

# vllm/engine/arg_utils.py of 0.18.1:695-902 and 0.32.0:967-1856. `-O` is the compilation config up to 0.11 and the
# optimization level after; the caller knows the version.
SHORT = {
    "q": "quantization",
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "dpn": "data_parallel_rank",
    "dpr": "data_parallel_start_rank",
    "dpl": "data_parallel_size_local",
    "dpa": "data_parallel_address",
    "dpp": "data_parallel_rpc_port",
    "dpb": "data_parallel_backend",
    "dph": "data_parallel_hybrid_lb",
    "dpe": "data_parallel_external_lb",
    "dpm": "data_parallel_multi_port_external_lb",
    "dcp": "decode_context_parallel_size",
    "pcp": "prefill_context_parallel_size",
    "ep": "enable_expert_parallel",
    "n": "nnodes",
    "r": "node_rank",
    "cc": "compilation_config",
    "ac": "attention_config",
    "sc": "speculative_config",
    "dc": "diffusion_config",
    "O": "optimization_level",
}
# Acronyms that a camelCase splitter would tear apart.
_WHOLE = (("LoRA", "Lora"), ("LoRa", "Lora"), ("vLLM", "Vllm"))
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def canonical(name: str) -> str:
    """Return the EngineArgs spelling of a flag, a key or a camelCase name; `no-` in front stays, see `affirmed`.

    Only the part before the first dot is changed: the keys of a JSON value follow it.
    """
    stripped = name.lstrip("-")
    head, dot, keys = stripped.partition(".")
    if head in SHORT and (name.startswith("-") or len(head) > 1):
        return SHORT[head] + dot + keys
    if not head.islower() and "_" not in head and "-" not in head and not head.isupper():
        for whole, plain in _WHOLE:
            head = head.replace(whole, plain)
        head = _HUMP.sub("_", head).lower()
    return head.replace("-", "_") + dot + keys


def affirmed(name: str) -> tuple[str, bool]:
    """Return a canonical name without `no_` in front, and whether it had it."""
    return (name[3:], True) if name.startswith("no_") and len(name) > 3 else (name, False)


def dashed(name: str) -> str:
    """Return the spelling that vLLM's command line documents."""
    return name.replace("_", "-")
