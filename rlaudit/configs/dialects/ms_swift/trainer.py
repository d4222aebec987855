"""ms-swift's GRPO trainer: how it samples, and what it makes of the engine's logprobs."""

from collections.abc import Mapping
from typing import Any

from rlaudit.configs.arguments import truth
from rlaudit.configs.dialects.ms_swift.release import Releases
from rlaudit.configs.draft import Draft, is_said, moved_default
from rlaudit.configs.syntax.node import Node, Unknown

_GRPO = "ms-swift 4.6.0 rlhf_trainers/grpo_trainer.py"
_REQUEST = "ms-swift 4.6.0 rlhf_trainers/rollout_mixin.py:357"
_MODE = "rollout_importance_sampling_mode"
ANOTHER_COMMAND = "the trainer that uses this server is started by another command"
NO_TRAINER = f"the trainer: {ANOTHER_COMMAND}"


def collect_sampling(draft: Draft, arguments: Mapping[str, Node], told: Releases) -> None:
    """Every parameter is sent with every request, so the model's generation_config decides none of these."""
    newer = told.since("4.0")

    def by_release(old: Any, new: Any) -> Any:
        said = f"ms-swift's default is {old} before 4.0 and {new} from there on; {told.because}"
        return moved_default(newer, old, new, said)

    defaults: dict[str, Any] = {
        "temperature": 0.9,
        "top_k": by_release(50, -1),
        "top_p": by_release(0.9, 1.0),
        "min_p": 0.0,
        "repetition_penalty": 1.0,
    }
    for name, default in defaults.items():
        draft.sampling.written_or(name, arguments.get(name), default, f"ms-swift's default; sent always ({_REQUEST})")
    draft.sampling.written_or("max_tokens", arguments.get("max_completion_length"))
    draft.sampling.written_or("structured_outputs", arguments.get("structured_outputs_regex"))
    draft.sampling.by_code("logprobs", 0, f"the sampled token's, asked for with use_vllm ({_REQUEST})")


def collect_facts(draft: Draft, arguments: Mapping[str, Node], kind: str) -> None:
    """Fill `draft.trainer`. kind: `rlhf` for a trainer, `rollout` for the server alone."""
    draft.trains("divides_by_temperature", True, f"`logits / self.temperature` ({_GRPO}:1488)")
    draft.trains("replays_filters", False, f"the trainer's softmax runs over the whole vocabulary ({_GRPO}:1488)")
    draft.trains("reads_prompt_logprobs", False, "prompt logprobs are asked of a teacher only")
    draft.trains("weight_updates", "between rollouts", f"weights are sent before a generation ({_GRPO})")
    note = "reset_prefix_cache() after every weight update (ms-swift 4.6.0 rlhf_trainers/rollout_mixin.py:663)"
    draft.trains("resets_prefix_cache", True, note)
    if kind == "rollout":
        draft.not_seen.append(NO_TRAINER)
        return
    if truth(arguments.get("use_vllm"), False) is True and "vllm_mode" in arguments:
        colocated = arguments["vllm_mode"].value == "colocate"
        if colocated:
            draft.trains(
                "seeds_replicas", True, "seeded with process index // tensor parallel size (rollout_mixin.py:520)"
            )
    draft.trains("recomputes_old_logprobs", True, f"old_per_token_logps ({_GRPO}:1008)")
    _correction(draft, arguments)
    _precision(draft, arguments)


def _correction(draft: Draft, arguments: Mapping[str, Node]) -> None:
    node = arguments.get(_MODE)
    on: Any = is_said(node)
    if node is not None and isinstance(node.value, Unknown):
        on = node.value
    note = f"{_MODE}, none by default ({_GRPO}:2420)"
    written = node if is_said(node) else None
    draft.trains("importance_sampling_correction", on, note, written)
    if written is not None:
        threshold = arguments.get("rollout_importance_sampling_threshold")
        limit = "2.0 by default" if not is_said(threshold) else str(threshold.plain())
        draft.trains("importance_sampling_mode", written.value, f"threshold {limit}", written)
    logged = truth(arguments.get("log_rollout_offpolicy_metrics"), False)
    seen: Any = on if on is not False else logged
    draft.trains(
        "logs_mismatch", seen, f"rollout_correction/*, with {_MODE} or log_rollout_offpolicy_metrics ({_GRPO}:2420)"
    )
    masked = is_said(arguments.get("off_policy_sequence_mask_delta"))
    draft.trains(
        "uses_rollout_logprobs", True if masked else seen, f"in the correction and in metrics only ({_GRPO}:2420)"
    )


def _precision(draft: Draft, arguments: Mapping[str, Node]) -> None:
    names = {"bfloat16": "bfloat16", "bf16": "bfloat16", "float16": "float16", "fp16": "float16", "float32": "float32"}
    node = arguments.get("torch_dtype")
    if node is not None and isinstance(node.value, str) and node.value in names:
        draft.trains("dtype", names[node.value], "torch_dtype", node)
    elif truth(arguments.get("bf16")) is True:
        draft.trains("dtype", "bfloat16", "bf16", arguments["bf16"])
