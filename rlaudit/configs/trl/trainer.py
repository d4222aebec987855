"""The trainer's side of a TRL config: what its logprobs are, and what is corrected."""

from collections.abc import Mapping
from typing import Any

from rlaudit.configs.arguments import truth
from rlaudit.configs.draft import Draft, is_said
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.trl.release import Releases

_CORRECTION = "vllm_importance_sampling_correction"
_GRPO = "TRL 1.16.0 trainer/grpo_trainer.py"


def collect_facts(draft: Draft, arguments: Mapping[str, Node], trainer: str, told: Releases) -> None:
    """Fill `draft.trainer`. trainer: GRPO, RLOO, OnlineDPO, GOLD or AsyncGRPO."""
    scales = trainer in {"GRPO", "RLOO", "AsyncGRPO"}
    old = told.since("0.16")
    divides: Any = scales if not scales or old else (False if old is False else Unknown(
        f"GRPOTrainer divides logits by the temperature since TRL 0.16; this is {told}"))  # fmt: skip
    draft.trains("divides_by_temperature", divides, "`logits / self.temperature` in GRPO and RLOO since TRL 0.16")
    draft.trains("replays_filters", False, f"the trainer's softmax runs over the whole vocabulary ({_GRPO})")
    draft.trains("reads_prompt_logprobs", False, "only sampled tokens' logprobs are asked for")
    _correction(draft, arguments, trainer, told)
    _updates(draft, arguments, trainer, told)
    _precision(draft, arguments, told)


def _correction(draft: Draft, arguments: Mapping[str, Node], trainer: str, told: Releases) -> None:
    if trainer == "AsyncGRPO":
        note = "AsyncGRPOTrainer takes the engine's logprobs as old logprobs, without a correction (trl#6945)"
        draft.trains("uses_rollout_logprobs", True, note)
        draft.trains("recomputes_old_logprobs", False, note)
        draft.trains("importance_sampling_correction", False, note)
        return
    if trainer != "GRPO":
        note = f"{trainer}Trainer does not use the engine's logprobs (TRL 1.16.0 trainer/rloo_trainer.py:782)"
        for fact in ("uses_rollout_logprobs", "importance_sampling_correction", "logs_mismatch"):
            draft.trains(fact, False, note)
        draft.trains("recomputes_old_logprobs", True, note)
        return
    node = arguments.get(_CORRECTION)
    there = told.since("0.23")
    on: Any = truth(node, bool(there))
    if not is_said(node) and there is None:
        on = Unknown(f"{_CORRECTION} is on by default since TRL 0.23 and does not exist before; this is {told}")
    note = f"{_CORRECTION}, True by default since TRL 0.23; nothing is corrected before ({_GRPO}:2860)"
    written = node if is_said(node) else None
    draft.trains("importance_sampling_correction", on, note, written)
    for fact in ("uses_rollout_logprobs", "recomputes_old_logprobs", "logs_mismatch"):
        value = on
        if fact == "recomputes_old_logprobs" and on is False:
            value = Unknown("old logprobs are recomputed only where generations are used for more than one update")
        draft.trains(fact, value, f"follows {_CORRECTION} ({_GRPO}:2644, 2860)")
    _correction_mode(draft, arguments, on, told)


def _correction_mode(draft: Draft, arguments: Mapping[str, Node], on: Any, told: Releases) -> None:
    if on is False:
        return
    node = arguments.get("vllm_importance_sampling_mode")
    limits = [
        f"{name.removeprefix('vllm_importance_sampling_')} {arguments[name].plain()}"
        for name in arguments
        if name.startswith("vllm_importance_sampling_c") and name != _CORRECTION
    ]
    if is_said(node):
        mode: Any = node.value
    elif told.since("0.26") is None or on is not True:
        mode = Unknown("TRL's default is token_truncate before 0.26 and sequence_mask from there on")
    else:
        mode = "sequence_mask" if told.since("0.26") else "token_truncate"
    limit = "; ".join(limits) or "TRL's limit of 2.0 before 0.26, 3.0 from there on"
    draft.trains("importance_sampling_mode", mode, limit, node if is_said(node) else None)


def _updates(draft: Draft, arguments: Mapping[str, Node], trainer: str, told: Releases) -> None:
    if trainer == "AsyncGRPO":
        note = "AsyncGRPOTrainer pauses the server with /pause?mode=keep, sends the weights, and resumes"
        draft.trains("weight_updates", "in flight", note)
        draft.trains("pause_mode", "keep", note)
        return
    draft.trains("weight_updates", "between rollouts", f"weights are sent before a generation starts ({_GRPO})")
    resets = told.since("0.16")
    value: Any = (
        resets if resets is not None else Unknown(f"reset_prefix_cache() is called since TRL 0.16; this is {told}")
    )
    draft.trains("resets_prefix_cache", value, "reset_prefix_cache() after every weight sync, TRL since 0.16")


def _precision(draft: Draft, arguments: Mapping[str, Node], told: Releases) -> None:
    bf16, fp16 = arguments.get("bf16"), arguments.get("fp16")
    if truth(fp16) is True:
        draft.trains("dtype", "float16", "fp16: true", fp16)
    elif truth(bf16) is True:
        draft.trains("dtype", "bfloat16", "bf16: true", bf16)
    elif not is_said(bf16) and not is_said(fp16) and told.since("0.20"):
        draft.trains("dtype", "bfloat16", "TRL trains in bf16 unless fp16 is set, since 0.20 (trainer/grpo_config.py)")
    head = arguments.get("cast_lm_head_to_fp32")
    if truth(head) is True:
        note = "cast_lm_head_to_fp32 is the trainer's head only; the engine's head keeps its dtype"
        draft.trains("head_dtype", "float32", note, head)
