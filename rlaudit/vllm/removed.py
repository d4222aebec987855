"""What vLLM took away: when, what happens to a config that still has it, and what to write instead.

First and last releases come from the catalogue; the advice is written by hand.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from rlaudit.vllm.lifetimes import first_without, lifetime
from rlaudit.vllm.milestones import UNKNOWN_KEY_IS_REFUSED, UNKNOWN_VARIABLE_IS_LOGGED

Translate = Callable[[Any], Any]


@dataclass(frozen=True)
class Removed:
    """One name that is gone."""

    # engine (argument and its flag), flag (of the server), sampling, variable, nested, method or import.
    kind: str
    name: str
    # The last release with it.
    last: Version
    # The first release without it.
    gone: Version
    # What happens to a config that has it.
    effect: str
    # Advice, may be empty.
    instead: str = ""
    # The engine argument that means exactly the same, and how to translate the value.
    replacement: tuple[str, Translate] | None = None


def removed(kind: str, name: str, version: Version) -> Removed | None:
    """Return what became of a name in a release; None if the release has it, or no older one had it."""
    span, gone = lifetime(kind, name), first_without(kind, name)
    if span is None or gone is None or version < gone:
        return None
    text, replacement = ADVICE.get((kind, name), ("", None))
    if replacement is not None:
        home = lifetime("engine", replacement[0])
        replacement = replacement if home is not None and home[0] <= version <= home[1] else None
    return Removed(kind, name, span[1], gone, effect(kind, name, version), text, replacement)


def effect(kind: str, name: str, version: Version) -> str:  # noqa: PLR0911 - one line per decision
    """Return what happens to a config that still has a name."""
    if kind == "engine" and name == "swap_space":
        return "the command line and EngineArgs(...) reject it, while LLM(...) drops it with a warning"
    flag = lifetime("flag", name.replace("_", "-"))
    if kind == "engine" and flag is not None and flag[1] >= version:
        return "EngineArgs(...) raises TypeError; the command line still takes the flag, and warns"
    if kind in ("engine", "flag"):
        return "the command line and EngineArgs(...) reject it, so the engine does not start"
    if kind == "sampling":
        return "SamplingParams(...) raises TypeError; the server ignores the field of a request"
    if kind == "nested" and version < UNKNOWN_KEY_IS_REFUSED:
        return "vLLM ignores the key without a message; from 0.13.0 on, it refuses unknown keys of a config object"
    if kind == "nested":
        return "vLLM refuses unknown keys of a config object, so the engine does not start"
    if kind == "method":
        return "calling this method raises an AttributeError"
    if version >= UNKNOWN_VARIABLE_IS_LOGGED:
        return 'nothing reads the variable; the log says "Unknown vLLM environment variable"'
    return "nothing reads the variable, and no message says so"


def _keep(value: Any) -> Any:
    return value


def _inside(key: str) -> Translate:
    return lambda value: {key: value}


# Values that ask for what every release without the argument does by itself: V1's scheduler puts a preempted request's
# computed tokens back to 0 (0.18.1 vllm/v1/core/sched/scheduler.py:941), and the other block manager is no more
# (0.8.5 vllm/engine/arg_utils.py:577).
DONE_ANYWAY: Mapping[str, tuple[Any, ...]] = {
    "preemption_mode": ("recompute",), "use_v2_block_manager": (True,),
}  # fmt: skip

_GONE_WITH_V0 = "This setting belonged to the V0 engine, and nothing replaces it."
_WITH_THE_ENGINE = "The engine loads processors when it starts: set its argument logits_processors."
_STRUCTURED = "structured_outputs_config"
_EPLB = "eplb_config"
ADVICE: Mapping[tuple[str, str], tuple[str, tuple[str, Translate] | None]] = {
    ("engine", "num_scheduler_steps"): (
        "vLLM has no multi-step scheduling any more. Set async_scheduling instead: it hides the scheduler's overhead.",
        None,
    ),
    ("engine", "multi_step_stream_outputs"): (_GONE_WITH_V0, None),
    ("engine", "use_v2_block_manager"): ("This block manager has been the only one since 0.7.", None),
    ("engine", "device"): ("vLLM detects the platform.", None),
    ("engine", "enable_reasoning"): ("reasoning_parser alone switches reasoning on.", None),
    ("engine", "disable_async_output_proc"): (_GONE_WITH_V0, None),
    ("engine", "preemption_mode"): ("V1 always recomputes preempted requests.", None),
    ("engine", "scheduler_delay_factor"): (_GONE_WITH_V0, None),
    ("engine", "num_lookahead_slots"): ("Speculative decoding sets this value by itself.", None),
    ("engine", "max_seq_len_to_capture"): (
        "V1 captures CUDA graphs by batch size, not by sequence length. Set max_cudagraph_capture_size or "
        "compilation_config.",
        None,
    ),
    ("engine", "swap_space"): ("V1 never swapped: preempted requests are recomputed.", None),
    ("engine", "rope_scaling"): ("Set it in hf_overrides (as rope_parameters with transformers 5).", None),
    ("engine", "rope_theta"): ("Set it in hf_overrides.", None),
    ("engine", "task"): ("Set runner and convert instead; a model that generates needs neither.", None),
    ("engine", "cuda_graph_sizes"): ("cudagraph_capture_sizes is its new name.", ("cudagraph_capture_sizes", _keep)),
    ("engine", "disable_mm_preprocessor_cache"): ("Set mm_processor_cache_gb=0 for true; false is the default.", None),
    ("engine", "enable_multimodal_encoder_data_parallel"): ("Set mm_encoder_tp_mode=data instead.", None),
    ("engine", "override_pooler_config"): ("pooler_config is its new name.", ("pooler_config", _keep)),
    ("engine", "disable_log_requests"): (
        "vLLM no longer logs requests by default; enable_log_requests makes it log them.",
        ("enable_log_requests", lambda value: not value),
    ),
    ("engine", "guided_decoding_backend"): (
        f"Set {_STRUCTURED}.backend instead.", (_STRUCTURED, _inside("backend")),
    ),
    ("engine", "guided_decoding_disable_fallback"): (
        f"Set {_STRUCTURED}.disable_fallback instead.", (_STRUCTURED, _inside("disable_fallback")),
    ),
    ("engine", "guided_decoding_disable_any_whitespace"): (
        f"Set {_STRUCTURED}.disable_any_whitespace instead.", (_STRUCTURED, _inside("disable_any_whitespace")),
    ),
    ("engine", "guided_decoding_disable_additional_properties"): (
        f"Set {_STRUCTURED}.disable_additional_properties instead.",
        (_STRUCTURED, _inside("disable_additional_properties")),
    ),
    ("engine", "num_redundant_experts"): (
        f"Set {_EPLB}.num_redundant_experts instead.", (_EPLB, _inside("num_redundant_experts")),
    ),
    ("engine", "eplb_window_size"): (f"Set {_EPLB}.window_size instead.", (_EPLB, _inside("window_size"))),
    ("engine", "eplb_step_interval"): (f"Set {_EPLB}.step_interval instead.", (_EPLB, _inside("step_interval"))),
    ("engine", "eplb_log_balancedness"): (
        f"Set {_EPLB}.log_balancedness instead.", (_EPLB, _inside("log_balancedness")),
    ),
    ("engine", "logits_processor_pattern"): (_WITH_THE_ENGINE, None),
    ("engine", "override_attention_dtype"): ("Nothing replaces this setting.", None),
    ("engine", "calculate_kv_scales"): ("The scales of the KV cache come from the checkpoint, or are 1.", None),
    ("engine", "max_num_partial_prefills"): ("Limit long prompts with long_prefill_token_threshold instead.", None),
    ("engine", "max_long_partial_prefills"): ("Limit long prompts with long_prefill_token_threshold instead.", None),
    ("engine", "enable_lora_bias"): ("LoRA biases are not supported any more.", None),
    ("engine", "lora_extra_vocab_size"): ("LoRA cannot add words to the vocabulary any more.", None),
    ("flag", "disable-frontend-multiprocessing"): ("The server always runs its engine in another process.", None),
    ("flag", "disable-log-requests"): ("Requests are not logged by default any more.", None),
    ("sampling", "best_of"): ("Ask for n, and rank the results yourself.", None),
    ("sampling", "guided_decoding"): ("Set structured_outputs instead, which takes the same constraints.", None),
    ("sampling", "logits_processors"): (_WITH_THE_ENGINE, None),
    ("sampling", "truncate_prompt_tokens"): ("Truncate before you send, or use the tokenizer's arguments.", None),
    ("variable", "VLLM_USE_V1"): ("V0 is gone. Only an older release of vLLM can run it.", None),
    ("variable", "VLLM_ATTENTION_BACKEND"): ("Set attention_backend instead (flag --attention-backend).", None),
    ("variable", "VLLM_FLASH_ATTN_VERSION"): ("Set attention_config.flash_attn_version instead.", None),
    ("variable", "VLLM_USE_TRTLLM_ATTENTION"): ("Set attention_config.use_trtllm_attention instead.", None),
    ("variable", "VLLM_USE_RAY_V2_EXECUTOR_BACKEND"): ("The new Ray executor is the only one.", None),
    ("nested", "compilation_config.level"): ("compilation_config.mode is its new name.", None),
    ("nested", "compilation_config.use_cudagraph"): ("Set compilation_config.cudagraph_mode instead.", None),
    ("nested", "compilation_config.full_cuda_graph"): ("Set compilation_config.cudagraph_mode=FULL instead.", None),
    ("nested", "compilation_config.use_inductor"): ("compilation_config.backend=eager turns Inductor off.", None),
}  # fmt: skip
# What programs import: the last release with it, and what takes its place, "" if nothing does. Only the packages right
# below `vllm`, and the one class that programs with rollouts import by name: any other missing import shows itself when
# the program starts. Source: the modules of every catalogued release's wheel.
IMPORTS: Mapping[str, tuple[str, str]] = {
    "GuidedDecodingParams": ("0.11.2", "StructuredOutputsParams"),
    "vllm.adapter_commons": ("0.10.2", "vllm.lora"),
    "vllm.attention": ("0.15.1", "vllm.v1.attention"),
    "vllm.beam_search": ("0.21.0", ""),
    "vllm.core": ("0.10.2", "vllm.v1.core"),
    "vllm.executor": ("0.11.0", "vllm.v1.executor"),
    "vllm.jsontree": ("0.10.0", "vllm.utils.jsontree"),
    "vllm.prompt_adapter": ("0.9.2", ""),
    "vllm.spec_decode": ("0.9.2", "vllm.v1.spec_decode"),
    "vllm.test_utils": ("0.11.0", ""),
    "vllm.worker": ("0.11.0", "vllm.v1.worker"),
}


def removed_imports(before: Version, after: Version) -> Iterator[Removed]:
    """Find the imports that the first release has and the second has not."""
    for name, (last, instead) in IMPORTS.items():
        if before <= Version(last) < after:
            advice = f"{instead} takes its place." if instead else ""
            effect_of_it = f"ImportError; {last} was the last with it"
            yield Removed("import", name, Version(last), after, effect_of_it, advice)
