"""What PipelineRL's trainer does with the rollout's logprobs, and how it updates the engine's weights."""

from packaging.version import Version

from rlaudit.configs.draft import Draft, arriving, known
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.vllm.milestones import PAUSE_GENERATION

RL = "PipelineRL finetune/rl/__init__.py"


def trainer_facts(draft: Draft, root: Node, vllm: Version, *, v0: bool) -> None:
    """Facts from the config and from the code as read at 58d3934 (V1) and e66341b (V0)."""
    draft.trains("divides_by_temperature", _divides(root), f"{RL}:208 divides the logits by finetune.rl.temperature")
    draft.trains("replays_filters", False, f"{RL}: the softmax is over the full vocabulary")
    draft.trains("uses_rollout_logprobs", True, f"{RL}: old logprobs are the ones the engine returned")
    draft.trains("recomputes_old_logprobs", False, f"{RL}: old logprobs are the ones the engine returned")
    draft.trains(
        "importance_sampling_correction", False,
        "PipelineRL has no rollout correction of its own: the policy loss takes its ratio to the rollout's logprobs",
    )  # fmt: skip
    draft.trains("logs_mismatch", True, f"{RL}:413-429 logs rl/kl_new_old and its kin with every step")
    draft.trains("seeds_replicas", True, "PipelineRL launch.py passes `seed` plus the index of the engine")
    draft.trains("salts_prefix_cache", False, "PipelineRL async_llm.py sends no cache salt")
    _precision(draft, root)
    _updates(draft, root, vllm, v0=v0)


def _divides(root: Node) -> object:
    trainer = root.get("finetune", "rl", "temperature")
    rollout = root.get("llm", "parameters", "temperature")
    if trainer is None or rollout is None:
        return True
    theirs, ours = arriving(trainer), arriving(rollout)
    if isinstance(theirs, Unknown):
        # Not followed, because the base config is elsewhere: the published one follows the rollout's temperature.
        return True if "llm.parameters.temperature" in trainer.text else theirs
    if isinstance(ours, Unknown) or theirs == ours:
        return True
    return Unknown(f"the trainer divides by {theirs} (finetune.rl.temperature), the rollout samples at {ours}")


def _precision(draft: Draft, root: Node) -> None:
    bf16 = root.get("finetune", "load_as_bf16")
    told = known(bf16, True)
    note = "finetune.load_as_bf16" if bf16 is not None else "conf/finetune/base.yaml of PipelineRL (58d3934)"
    draft.trains("dtype", "bfloat16" if told else "float32", note, bf16)
    quantization = draft.engine.get("quantization")
    if quantization is not None and quantization.value == "bf16_last_layer_fp32":
        draft.trains("rollout_head_dtype", "float32", "quantization bf16_last_layer_fp32 computes the head in fp32")
    knob = root.get("fp32_lm_head")
    if knob is not None:
        value = arriving(knob)
        if not isinstance(value, Unknown):
            value = "float32" if value else draft.trainer["dtype"].value
        draft.trains("head_dtype", value, "fp32_lm_head", knob)
    elif quantization is not None and quantization.value is not None and root.get("vllm_config", "use_v1") is None:
        value = quantization.value if isinstance(quantization.value, Unknown) else "float32"
        draft.trains("head_dtype", value, "PipelineRL finetune/checkpoints.py:44-103 (58d3934): the head is fp32")


def _updates(draft: Draft, root: Node, vllm: Version, *, v0: bool) -> None:
    sends = root.get("finetune", "send_weight_updates")
    mode = known(root.get("debug", "mode"))
    if known(sends) is False or mode:
        draft.trains("weight_updates", "none", "finetune.send_weight_updates is false or debug.mode is set")
        return
    draft.trains("weight_updates", "in flight", "PipelineRL updates the weights while sequences are generated")
    draft.trains("resets_prefix_cache", False, "no reset follows the update (vllm0.py, vllm1.py)")
    if v0:
        note = "PipelineRL vllm0.py takes the executor's lock between two steps; running sequences keep their KV cache"
        draft.trains("pause_mode", "keep", note)
        draft.trains("pause_clears_cache", False, note)
        draft.trains("pause_arguments", [], note)
        return
    note = "PipelineRL vllm1.py:160 (58d3934): pause_generation(mode='keep', clear_cache=False)"
    if vllm < PAUSE_GENERATION:
        reason = f"vLLM {vllm} has no pause_generation; how PipelineRL's V1 server paused it was not read"
        draft.trains("pause_mode", Unknown(reason), reason)
        return
    draft.trains("pause_mode", "keep", note)
    draft.trains("pause_clears_cache", False, note)
    draft.trains("pause_arguments", ["mode", "clear_cache"], note)
