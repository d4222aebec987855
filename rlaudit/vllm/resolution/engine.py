"""V0 or V1: which engine a release starts, without saying so.

From 0.8.5 to 0.10.2 V1 is the default and V0 the silent fallback for everything that V1 does not support yet; with
VLLM_USE_V1=1 these releases refuse to start instead. V0 is gone in 0.11.0.
"""

from collections.abc import Iterator
from typing import Any, Literal

from packaging.version import Version

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, number, part

EngineKind = Literal["V0", "V1"]
VARIABLE = "VLLM_USE_V1"
FIRST_WITHOUT_V0 = Version("0.11.0")
_ARGUMENTS = "vllm/engine/arg_utils.py"
_V1_ATTENTION = {
    "FLASH_ATTN", "FLASH_ATTN_VLLM_V1", "FLASHINFER", "FLASHINFER_VLLM_V1", "FLASHMLA", "FLASHMLA_VLLM_V1",
    "FLASH_ATTN_MLA", "FLASHINFER_MLA", "CUTLASS_MLA", "CUTLASS_MLA_VLLM_V1", "TRITON_MLA", "TRITON_MLA_VLLM_V1",
    "TRITON_ATTN_VLLM_V1", "TREE_ATTN", "XFORMERS_VLLM_V1", "FLEX_ATTENTION", "TORCH_SDPA_VLLM_V1", "PALLAS",
    "PALLAS_VLLM_V1", "ROCM_AITER_MLA", "ROCM_AITER_MLA_VLLM_V1", "ROCM_AITER_FA",
}  # fmt: skip
# An argument, the values that V1 takes, and the first release whose V1 takes all values.
_ONLY: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("logits_processor_pattern", (None,), "0.11.0"),
    ("preemption_mode", (None,), "0.11.0"),
    ("disable_async_output_proc", (None, False), "0.11.0"),
    ("scheduling_policy", (None, "fcfs"), "0.9.2"),
    ("num_scheduler_steps", (None, 1), "0.10.1"),
    ("scheduler_delay_factor", (None, 0, 0.0), "0.11.0"),
    ("guided_decoding_backend", (None, "auto", "xgrammar", "guidance"), "0.10.1"),
    ("enable_prompt_adapter", (None, False), "0.10.0"),
    ("enable_prompt_embeds", (None, False), "0.11.0"),
    ("dtype", (None, "auto", "half", "float16", "bfloat16"), "0.9.2"),
    ("task", (None, "auto", "generate"), "0.9.2"),
    ("max_num_partial_prefills", (None, 1), "0.11.0"),
    ("max_long_partial_prefills", (None, 1), "0.11.0"),
    ("otlp_traces_endpoint", (None,), "0.10.2"),
    ("collect_detailed_traces", (None,), "0.10.2"),
)


def has_v0(version: Version) -> bool:
    """Return whether a release has the engine V0 beside V1, and so reads VLLM_USE_V1."""
    return version < FIRST_WITHOUT_V0


def variables_for(kind: EngineKind | None, version: Version) -> dict[str, str]:
    """Return the environment variables that make a release start the engine V0 or V1; none if neither is requested, or
    there is no choice."""
    return {VARIABLE: kind.removeprefix("V")} if kind is not None and has_v0(version) else {}


def why_v1_refuses(view: Resolution) -> str | None:
    """Return a clause with why a release refuses to start with VLLM_USE_V1=1; None if no reason is known."""
    if not has_v0(view.version):
        return None
    return next((why for why in _fallbacks(view, forced=True) if isinstance(why, str)), None)


def why_v1s_class_stops(view: Resolution) -> str | None:
    """Return what stops a program that builds AsyncLLM in this release; None if nothing certain does.

    The class asks for VLLM_USE_V1, which a fallback to V0 takes away (vllm/v1/engine/async_llm.py:76 of 0.8.5).
    """
    if not view.config.needs_v1 or not has_v0(view.version):
        return None
    variable = view.variable(VARIABLE)
    if isinstance(variable, str) and variable.strip() in ("0", ""):
        return f"{VARIABLE}={variable}"
    return next((why for why in _fallbacks(view, forced=variable is not None) if isinstance(why, str)), None)


def apply(view: Resolution) -> Resolved:
    """Return V0 or V1, with the first reason for V0."""
    if not has_v0(view.version) or view.config.needs_v1:
        removed = f"V0 was removed in {FIRST_WITHOUT_V0}"
        return Resolved("V1", "the program builds AsyncLLM, V1's own class" if has_v0(view.version) else removed)
    variable = view.variable(VARIABLE)
    if isinstance(variable, Unknown):
        return Resolved(variable, f"{VARIABLE} decides")
    if variable is not None:
        on = variable.strip() not in ("0", "")
        refused = why_v1_refuses(view) if on else None
        doubt = f", and V1 of {view.version} refuses to start: {refused}" if refused else ""
        return Resolved("V1" if on else "V0", f"{VARIABLE}={variable} is set{doubt}", at=_ARGUMENTS)
    reasons = list(_fallbacks(view))
    certain = [why for why in reasons if isinstance(why, str)]
    if certain:
        return Resolved("V0", f"V1 of {view.version} falls back without an error: {certain[0]}")
    unknown = [why for why in reasons if isinstance(why, Unknown)]
    if unknown:
        return Resolved(unknown[0], "V1 falls back to V0 without an error")
    return Resolved("V1", f"it is the default of {view.version}, and nothing in the config makes it fall back")


def _fallbacks(view: Resolution, *, forced: bool = False) -> Iterator[str | Unknown]:
    """Yield why V0 runs, most certain first; Unknown for a condition that is not known from the config.

    forced: VLLM_USE_V1=1 is set, which also takes what V1 calls experimental.
    """
    machine = view.machine
    if machine.platform == "cpu" and not view.since("0.9.1"):
        yield "the platform is a CPU"
    if machine.platform == "cuda" and machine.capability < 80 and not view.since("0.10.2"):
        yield f"{machine.name} is older than Ampere"
    # 0.9.1 vllm/engine/arg_utils.py:1443; 0.9.2 asks the platform (`default_v1`), and that of AMD GPUs says yes.
    if machine.platform not in {"cuda", "cpu"} and not forced and not view.since("0.9.2"):
        why = f"{machine.name} is no CUDA device"
        program = view.config.path.endswith(".py")
        yield Unknown(f"{why}, on which V0 runs unless the program sets {VARIABLE}") if program else why
    for name, taken, until in _ONLY:
        value = view.given(name)
        possible = value.among if isinstance(value, Unknown) else (value,)
        if view.since(until) or (possible and all(choice in taken for choice in possible)):
            continue
        yield value if isinstance(value, Unknown) else f"{name}={value}"
    yield from _formats(view)
    yield from _parallel_and_speculative(view, forced)
    backend = view.variable("VLLM_ATTENTION_BACKEND")
    if isinstance(backend, Unknown):
        yield backend
    elif backend and backend not in _V1_ATTENTION:
        yield f"VLLM_ATTENTION_BACKEND={backend}"


def _formats(view: Resolution) -> Iterator[str | Unknown]:
    load_format = view.given("load_format")
    if load_format == "sharded_state" or (load_format == "tensorizer" and not view.since("0.9.0")):
        yield f"load_format={load_format}"
    if view.given("quantization") == "gguf" and not view.since("0.9.0"):
        yield "quantization=gguf"
    kv_cache = view.given("kv_cache_dtype")
    if isinstance(kv_cache, Unknown):
        yield kv_cache
    elif kv_cache not in (None, "auto"):
        hopper = view.machine.capability == 90 and str(kv_cache).startswith("fp8")
        if not view.since("0.10.0") and not hopper:
            yield f"kv_cache_dtype={kv_cache}"
        elif not hopper:
            yield Unknown(f"whether V1 takes kv_cache_dtype={kv_cache} depends on the attention backend")


def _parallel_and_speculative(view: Resolution, forced: bool) -> Iterator[str | Unknown]:
    stages = view.given("pipeline_parallel_size")
    executor = view.given("distributed_executor_backend")
    taken = {"ray"}
    if view.since("0.9.0"):
        taken |= {"mp", "external_launcher"}
    unset_is_taken = view.since("0.9.1")
    if isinstance(stages, Unknown):
        yield stages
    elif isinstance(executor, Unknown) and (number(stages) or 1) > 1:
        yield executor
    elif (number(stages) or 1) > 1 and executor not in taken and not (executor is None and unset_is_taken):
        yield f"pipeline_parallel_size={stages} without Ray"
    speculative = view.given("speculative_config")
    if isinstance(speculative, Unknown):
        yield speculative
    elif speculative is not None and not view.since("0.10.0"):
        method = part(view, "speculative_config", "method")
        methods: tuple[str, ...] = ("ngram", "[ngram]", "eagle", "eagle3") if forced or view.since("0.9.0") else ()
        methods += ("medusa", "deepseek_mtp") if view.since("0.9.0") else ()
        if isinstance(method, Unknown):
            yield method
        elif method not in methods:
            yield "speculative decoding"


RESOLUTION = ResolutionRule(
    "engine",
    (
        Function(_ARGUMENTS, "EngineArgs._is_v1_supported_oracle"),
        Function(_ARGUMENTS, "EngineArgs.create_engine_config", ("use_v1", "try_v1", "VLLM_USE_V1")),
        Function("vllm/platforms/cpu.py", "CpuPlatform.default_v1"),
    ),
    apply,
)
