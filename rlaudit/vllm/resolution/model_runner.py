"""Which model runner of the V1 engine: the second one takes over, model by model, from 0.22.0 on.

It samples with other kernels (Gumbel-max instead of an exponential race) in another order of logits processors.
"""

from rlaudit.unknown import Unknown
from rlaudit.vllm.architecture import published
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, engine_unknown, part, task_of

_CONFIG = "vllm/config/vllm.py"
_FIRST = {"Qwen3ForCausalLM"}
_SECOND = {*_FIRST, "LlamaForCausalLM", "MistralForCausalLM"}
_THIRD = {*_SECOND, "DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM", "GraniteMoeForCausalLM"}
_MIXTURES = {
    "DeepseekV2ForCausalLM", "GraniteMoeForCausalLM", "InklingForCausalLM", "InklingForConditionalGeneration",
    "KimiK3ForConditionalGeneration", "LongcatFlashNgramForCausalLM", "Qwen2MoeForCausalLM",
}  # fmt: skip


def apply(view: Resolution) -> Resolved:  # noqa: PLR0911 - one line per decision
    """Return `V1`, `V2`, or `V0` for the old engine's own."""
    if view.is_v1 is None:
        return engine_unknown(view, "the model runner")
    if not view.is_v1:
        return Resolved("V0", "the V0 engine has its runner")
    if not view.since("0.12.0"):
        return Resolved("V1", "the second model runner came with 0.12.0")
    variable = view.variable("VLLM_USE_V2_MODEL_RUNNER")
    if isinstance(variable, Unknown):
        return Resolved(variable, "VLLM_USE_V2_MODEL_RUNNER decides")
    if variable is not None:
        return Resolved("V2" if variable == "1" else "V1", f"VLLM_USE_V2_MODEL_RUNNER={variable} is set")
    if not view.since("0.22.0"):
        return Resolved("V1", "the second model runner is taken only on request, until 0.21")
    if view.machine.platform == "cpu":
        return Resolved("V1", "the second model runner needs Triton, which CPU builds do not have")
    return _unsupported(view) or _by_model(view)


def _unsupported(view: Resolution) -> Resolved | None:
    """Return V1 if a feature keeps the first runner; the list shrinks with every release."""
    for name, until in (("logits_processors", "0.31.0"), ("enable_prompt_embeds", "0.29.0"),
                        ("enable_return_routed_experts", "0.28.0"), ("enable_elastic_ep", "0.32.0"),
                        ("enable_dbo", "0.30.0"), ("kv_sharing_fast_prefill", "0.30.0")):  # fmt: skip
        value = view.given(name)
        if isinstance(value, Unknown) and not view.since(until):
            return Resolved(value, f"{name} keeps the first model runner until {until}")
        if value not in (None, False, [], "") and not view.since(until):
            return Resolved("V1", f"{name} keeps the first model runner until {until}")
    if view.value("logprobs_mode") in ("raw_logits", "processed_logits") and not view.since("0.26.0"):
        return Resolved("V1", "a logits mode keeps the first model runner until 0.26.0")
    speculative = view.given("speculative_config")
    if speculative is not None and part(view, "speculative_config", "method") not in ("eagle", "eagle3", "mtp"):
        return Resolved(Unknown("the method of speculative decoding decides"), "speculative decoding")
    if task_of(view) not in (None, "auto", "generate") and not view.since("0.29.0"):
        return Resolved("V1", "only models that generate take the second model runner before 0.29.0")
    return None


def _by_model(view: Resolution) -> Resolved:
    if view.since("0.29.0"):
        return Resolved("V2", "nothing in this config keeps Model Runner V1")
    checkpoint, how = view.checkpoint, ""
    if checkpoint is None and (checkpoint := published(view)) is not None:
        how = " (inferred from the model's name)"
    architectures = set(checkpoint.get("architectures") or ()) if checkpoint is not None else None
    if not architectures:
        reason = "from 0.22.0 to 0.28, the model's architecture decides, and the checkpoint is not here"
        return Resolved(Unknown(reason), "by architecture")
    assert checkpoint is not None
    name = ", ".join(sorted(architectures))
    mixture = any(checkpoint.get(key) for key in ("num_experts", "num_local_experts", "n_routed_experts"))
    if view.since("0.25.0"):
        taken = bool(architectures & _MIXTURES) or not mixture
    elif view.since("0.24.0"):
        taken = bool(architectures & _THIRD)
    else:
        listed = _SECOND if view.since("0.23.0") else _FIRST
        taken = bool(architectures & listed) and not mixture and not checkpoint.get("quantization_config")
    return Resolved(
        "V2" if taken else "V1", f"{name}{how} {'runs' if taken else 'does not run'} on Model Runner V2 by default"
    )


RESOLUTION = ResolutionRule(
    "model_runner",
    (
        Function(_CONFIG, "VllmConfig.use_v2_model_runner"),
        Function(_CONFIG, "VllmConfig._is_default_v2_model_runner_model"),
        Function(_CONFIG, "DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES"),
        Function(_CONFIG, "VllmConfig._get_v2_model_runner_unsupported_features"),
    ),
    apply,
)
