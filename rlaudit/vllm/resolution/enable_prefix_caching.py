"""Prefix caching: off in V0, on in V1, declared as None in both.

Cached blocks survive a weight update unless something resets them. The attention layer, once it knows its backend,
has the last word: Attention.__init__ in vllm/model_executor/layers/attention (vllm/attention/layer.py until 0.14).
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, part, task_of

_ARGUMENTS = "vllm/engine/arg_utils.py"
_WORD = ("enable_prefix_caching",)


def apply(view: Resolution) -> Resolved | None:  # noqa: PLR0911 - one line per decision
    """Return whether prefixes are cached: by default for models that generate, on V1."""
    if view.is_v1 is None:
        return engine_unknown(view, "prefix caching")
    if not view.is_v1:
        return Resolved(False, "V0 caches prefixes only when asked")
    if view.given("enable_prompt_embeds") is True and view.since("0.11.0") and not view.since("0.11.1"):
        return Resolved(False, "off with prompt embeddings", overrules=True)
    if not view.since("0.9.2") and part(view, "compilation_config", "full_cuda_graph") is True and view.since("0.9.0"):
        return Resolved(False, "off with full CUDA graphs in 0.9.0 and 0.9.1", overrules=True)
    if (
        view.since("0.13.0")
        and view.variable("VLLM_BATCH_INVARIANT") == "1"
        and view.value("attention_backend") == "FLASHINFER"
    ):
        why = "the attention layer turns it off with VLLM_BATCH_INVARIANT and FLASHINFER"
        return Resolved(False, why, overrules=True)
    task = task_of(view)
    if task not in (None, "auto", "generate"):
        return Resolved(Unknown("the default differs for models that do not generate"), "not a generating model")
    hybrid = ", hybrid ones (Mamba) excepted" if view.since("0.11.1") and not view.since("0.28.0") else ""
    return Resolved(True, f"V1 caches prefixes by default for models that generate{hybrid}")


RESOLUTION = ResolutionRule(
    "enable_prefix_caching",
    (
        Function(_ARGUMENTS, "EngineArgs._set_default_args_v0", _WORD),
        Function(_ARGUMENTS, "EngineArgs._set_default_args_v1", _WORD),
        Function(_ARGUMENTS, "EngineArgs._set_default_args", _WORD),
        Function(
            _ARGUMENTS,
            "EngineArgs._set_default_chunked_prefill_and_prefix_caching_args",
            (*_WORD, "default_prefix_caching"),
        ),
        Function("vllm/config/model.py", "ModelConfig.is_prefix_caching_supported"),
    ),
    apply,
)
