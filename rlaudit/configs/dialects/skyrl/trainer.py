"""What SkyRL's trainer does with the rollout's logprobs, and how weights reach the engines."""

from packaging.version import Version

from rlaudit.configs.draft import Draft, arriving, is_said, known
from rlaudit.configs.syntax.node import Node, Unknown

_CORRECTION = ("trainer", "algorithm", "off_policy_correction")


def trainer_facts(draft: Draft, root: Node, section: Node, vllm: Version) -> None:
    """Facts from the config and from SkyRL's code (a956457)."""
    algorithm = root.get("trainer", "algorithm", "temperature")
    sampled = draft.sampling["temperature"].value if "temperature" in draft.sampling else 1.0
    divides: object = True
    if is_said(algorithm):
        told = arriving(algorithm)
        if isinstance(told, Unknown):
            divides = told
        elif not isinstance(sampled, Unknown) and told != sampled:
            divides = Unknown(f"the trainer divides by {told} (trainer.algorithm.temperature), not by {sampled}")
    draft.trains("divides_by_temperature", divides, "SkyRL scales the logits by trainer.algorithm.temperature")
    draft.trains("replays_filters", False, "SkyRL takes its softmax over the full vocabulary")
    draft.trains("recomputes_old_logprobs", True, "SkyRL computes action_log_probs under the rollout's weights")
    asked = draft.sampling.get("logprobs")
    logged: object = asked.value if asked is not None and isinstance(asked.value, Unknown) else True
    if asked is None or asked.value is None:
        logged = False
    note = "generator.sampling_params.logprobs"
    draft.trains("uses_rollout_logprobs", logged, note)
    draft.trains("logs_mismatch", logged, "policy/rollout_train_logprobs_abs_diff_* need the rollout's logprobs")
    _correction(draft, root)
    _updates(draft, root)
    _replicas(draft, section)
    bf16 = root.get("trainer", "bf16")
    draft.trains("dtype", "bfloat16" if known(bf16, True) else "float32", "trainer.bf16, true where not written", bf16)


def _correction(draft: Draft, root: Node) -> None:
    for key in (
        "tis_ratio_type",
        "sequence_mask_metric",
        "token_mask_is_threshold_low",
        "token_mask_is_threshold_high",
    ):
        node = root.get(*_CORRECTION, key)
        if is_said(node):
            value = arriving(node)
            told = value if isinstance(value, Unknown) else True
            draft.trains("importance_sampling_correction", told, f"off_policy_correction.{key}", node)
            draft.trains("importance_sampling_mode", value, f"off_policy_correction.{key}", node)
            return
    older = root.get("trainer", "algorithm", "use_tis")
    if older is not None:
        draft.trains("importance_sampling_correction", arriving(older), "trainer.algorithm.use_tis", older)
        return
    draft.trains("importance_sampling_correction", False, "SkyRL's default: tis_ratio_type is null")


def _updates(draft: Draft, root: Node) -> None:
    asynchronous = root.get("trainer", "fully_async")
    if asynchronous is None:
        draft.trains("weight_updates", "between rollouts", "trainer.fully_async is not configured")
        note = "SkyRL fsdp_worker.py:278-285, megatron_worker.py:1467-1479 reset it with running requests"
        draft.trains("resets_prefix_cache", True, note)
        draft.not_seen.append("whether the entry point is the fully asynchronous trainer: its defaults are in code")
        return
    draft.trains("weight_updates", "in flight", "trainer.fully_async", asynchronous)
    clears = asynchronous.get("clear_kv_cache_on_weight_sync")
    value = arriving(clears) if clears is not None else False
    draft.trains("resets_prefix_cache", value, "trainer.fully_async.clear_kv_cache_on_weight_sync", clears)
    note = "SkyRL remote_inference_client.py:985-1017"
    draft.trains("pause_mode", "keep", note)
    draft.trains("pause_clears_cache", value if isinstance(value, Unknown) else bool(value), note)
    draft.trains("pause_arguments", ["mode", "clear_cache"], note)
    salt = root.get("generator", "use_cache_salt")
    if salt is not None:
        draft.trains("salts_prefix_cache", arriving(salt), "generator.use_cache_salt", salt)
    else:
        reason = "generator.use_cache_salt is not written: true in SkyRL since 2026-08, absent before"
        draft.trains("salts_prefix_cache", Unknown(reason), reason)


def _replicas(draft: Draft, section: Node) -> None:
    node = section.get("num_engines") or section.get("num_inference_engines")
    if node is not None:
        draft.trains("replicas", arriving(node), "one per engine", node)
    else:
        draft.trains("replicas", 1, "SkyRL's default of num_engines")
