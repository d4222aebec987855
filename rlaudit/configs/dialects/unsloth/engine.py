"""What unsloth's `from_pretrained(..., fast_inference=True)` hands to vLLM, and how its GRPO samples.

`load_vllm` of unsloth_zoo builds the engine arguments, keeps those that this vLLM's EngineArgs has, and drops the rest
with a line of output. Read in unsloth_zoo 2025.10.1 and 2026.10.9, unsloth 2026.10.9.
"""

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rlaudit.configs.arguments import truth
from rlaudit.configs.draft import Draft, arriving, by_code, by_file, is_said, known
from rlaudit.configs.rollout_config import Loss, Setting
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.milestones import HEAD_DTYPE, LOGPROBS_MODE

_ZOO = "unsloth_zoo 2026.10.9 vllm_utils.py"
# Argument of from_pretrained -> engine argument and default.
_PASSED: Mapping[str, tuple[str, Any]] = {
    "max_seq_length": ("max_model_len", 2048),
    "max_lora_rank": ("max_lora_rank", 64),
    "max_loras": ("max_loras", 1),
    "enforce_eager": ("enforce_eager", False),
    "enable_prefix_caching": ("enable_prefix_caching", True),
    "disable_log_stats": ("disable_log_stats", True),
    "max_logprobs": ("max_logprobs", 0),
}
# Fixed by code of its own, or by free memory.
_NOT_FROM_SAMPLING_PARAMS = ("seed", "n", "temperature", "max_tokens", "logprobs")
VARIABLES = ("UNSLOTH_VLLM_", "VLLM_")


def collect_engine(draft: Draft, arguments: Mapping[str, Node], vllm: Version) -> None:
    """Fill `draft.engine` from the arguments of `from_pretrained`."""
    catalogue = Catalogue.at(vllm)
    engine: dict[str, Setting] = {}
    for argument, (name, default) in _PASSED.items():
        node = arguments.get(argument)
        if not is_said(node):
            engine[name] = by_code(name, default, f"unsloth's default of {argument} ({_ZOO}:5011)")
        else:
            assert node is not None
            engine[name] = by_file(name, node)
    engine["enable_lora"] = by_code("enable_lora", True, f"always ({_ZOO}:5028)")
    engine["seed"] = by_code("seed", 0, f"load_vllm's default; random_state is not handed on ({_ZOO}:4385)")
    engine["enable_chunked_prefill"] = by_code("enable_chunked_prefill", True, f"{_ZOO}:4598, off for MLLama")
    _memory(engine, arguments)
    _types(engine, arguments)
    _logprobs(engine, vllm)
    level = arguments.get("compilation_config")
    reason = "load_vllm turns the level 3 into a compilation config of its own, by vLLM version and model"
    engine["compilation_config"] = (
        by_code("compilation_config", Unknown(reason), reason) if level is None
        else by_file("compilation_config", level, Unknown(reason), reason)
    )  # fmt: skip
    for name, setting in engine.items():
        if name in catalogue.engine:
            draft.engine[name] = setting
        elif setting.place is not None:
            reason = f"vLLM {catalogue.version} has no {name}: unsloth leaves it out"
            draft.lose(name, Node(setting.written, setting.place), Loss.UNKNOWN_KEY, reason)


def _memory(engine: dict[str, Setting], arguments: Mapping[str, Node]) -> None:
    node = arguments.get("gpu_memory_utilization")
    note = f"lowered by load_vllm where memory is taken, raised with standby ({_ZOO}:4443)"
    name = "gpu_memory_utilization"
    engine[name] = by_code(name, 0.5, f"unsloth's default; {note}") if node is None else by_file(name, node, note=note)
    for name in ("max_num_batched_tokens", "max_num_seqs"):
        written = arguments.get(name)
        reason = f"load_vllm chooses it from free memory ({_ZOO}:5020)"
        if not is_said(written):
            engine[name] = by_code(name, Unknown(reason), reason)
        else:
            engine[name] = by_file(name, written, note="load_vllm may lower it")


def _types(engine: dict[str, Setting], arguments: Mapping[str, Node]) -> None:
    """4-bit weights by default; dtype follows the GPU where it is not written."""
    quantized = truth(arguments.get("load_in_4bit"), True)
    for name, otherwise in (("quantization", None), ("load_format", "auto")):
        value: Any = quantized if isinstance(quantized, Unknown) else ("bitsandbytes" if quantized else otherwise)
        node = arguments.get("load_in_4bit")
        note = f"follows load_in_4bit, True by default ({_ZOO}:5015)"
        engine[name] = by_code(name, value, note) if node is None else by_file(name, node, value, note)
    dtype = arguments.get("dtype")
    if not is_said(dtype):
        reason = "dtype is not written: bfloat16 where the GPU has it, else float16"
        engine["dtype"] = by_code("dtype", Unknown(reason, ("bfloat16", "float16")), reason)
    else:
        assert dtype is not None
        engine["dtype"] = by_file("dtype", dtype)
    cache = truth(arguments.get("float8_kv_cache"), False)
    value = cache if isinstance(cache, Unknown) else ("fp8" if cache else "auto")
    engine["kv_cache_dtype"] = by_code("kv_cache_dtype", value, f"follows float8_kv_cache ({_ZOO}:5017)")


def _logprobs(engine: dict[str, Setting], vllm: Version) -> None:
    if vllm < LOGPROBS_MODE:
        return
    reason = (
        "processed_logprobs in unsloth_zoo 2026.10.9, not passed in August 2026 and before; the release is not known"
    )
    engine["logprobs_mode"] = by_code("logprobs_mode", Unknown(reason), f"{reason} ({_ZOO}:5024)")


def collect_head(draft: Draft, variables: Mapping[str, Node], vllm: Version) -> None:
    """UNSLOTH_VLLM_FP32_LM_HEAD: both heads, or an error below vLLM 0.26."""
    node = variables.get("UNSLOTH_VLLM_FP32_LM_HEAD")
    on = truth(node, False)
    if node is None or on is False:
        return
    if vllm < HEAD_DTYPE:
        reason = f"unsloth refuses to start: an fp32 lm_head needs vLLM 0.26 or later ({_ZOO}:3988)"
        draft.lose("UNSLOTH_VLLM_FP32_LM_HEAD", node, Loss.NOT_PASSED, reason)
        return
    value: Any = "float32" if on is True else on
    note = f"UNSLOTH_VLLM_FP32_LM_HEAD, set before unsloth is imported ({_ZOO}:3996)"
    draft.trains("rollout_head_dtype", value, note, node)
    draft.trains("head_dtype", value, note, node)
    if on is True:
        draft.engine.by_code("hf_overrides", {"head_dtype": "float32"}, note)


def sampling_params(draft: Draft, arguments: Mapping[str, Node]) -> None:
    """`vllm_sampling_params=SamplingParams(...)`: what it says counts in newer releases, apart from five fields."""
    source = "unsloth 2026.10.9 models/rl_replacements.py:4453"
    for name, node in arguments.items():
        if name in _NOT_FROM_SAMPLING_PARAMS:
            draft.lose(name, node, Loss.OVERRULED, f"GRPOConfig's own value is used for {name} ({source})")
            continue
        before = draft.sampling.get(name)
        value = known(node)
        if name == "top_k" and value == -1:
            value = 0
        if (
            isinstance(value, list)
            or isinstance(arriving(node), Unknown)
            or (before is not None and before.value == value)
        ):
            draft.sampling.by_file(name, node)
        else:
            was = "vLLM's default" if before is None else str(before.value)
            reason = f"{value} in unsloth 2026.10.9; releases of 2025 hand on lists only and use {was}"
            draft.sampling.by_file(name, node, Unknown(reason), f"{reason} ({source})")
