"""What NeMo-RL's trainer does with the rollout's logprobs, and how weights reach the engine."""

from rlaudit.configs.draft import Draft, arriving, is_said, known
from rlaudit.configs.syntax.node import Node, Unknown, within


def trainer_facts(draft: Draft, root: Node, *, inherits: bool) -> None:
    """Facts from the config and from NeMo-RL's code (7ea279a)."""
    draft.trains("divides_by_temperature", True, "NeMo-RL divides the policy's logits by generation.temperature")
    draft.trains("replays_filters", True, "NeMo-RL replays top-k and top-p in the policy's logprobs (#773)")
    draft.trains("uses_rollout_logprobs", True, "generation_logprobs enter token_mult_prob_error and the correction")
    draft.trains("recomputes_old_logprobs", True, "NeMo-RL computes prev_logprobs under the rollout's weights")
    draft.trains("logs_mismatch", True, "token_mult_prob_error and gen_kl_error are logged with every step")
    draft.trains("seeds_replicas", True, "NeMo-RL vllm_worker.py:configure_worker")
    draft.trains("salts_prefix_cache", False, "NeMo-RL sends no cache salt")
    _correction(draft, root, inherits=inherits)
    _updates(draft, root, inherits=inherits)
    precision = root.get("policy", "precision")
    if precision is not None:
        draft.trains("dtype", arriving(precision), "policy.precision", precision)
    ranks = [one.value if one is not None else None
             for one in map(draft.engine.get, ("tensor_parallel_size", "pipeline_parallel_size"))]  # fmt: skip
    missing = "GPUs and ranks are not both in this file"
    draft.count_replicas(_generation_gpus(root), ranks, "GPUs of the generation", missing)


def _correction(draft: Draft, root: Node, *, inherits: bool) -> None:
    switch = root.get("loss_fn", "use_importance_sampling_correction")
    if switch is not None:
        note = "loss_fn.use_importance_sampling_correction"
        draft.trains("importance_sampling_correction", arriving(switch), note, switch)
    elif not inherits:
        draft.trains("importance_sampling_correction", False, "NeMo-RL's default: no correction")
    masks = root.get("grpo", "seq_logprob_error_threshold")
    if is_said(masks) and not (switch is not None and switch.value is True):
        note = "grpo.seq_logprob_error_threshold takes sequences out of the loss"
        draft.trains("importance_sampling_correction", True, note, masks)
    kind = root.get("loss_fn", "truncated_importance_sampling_type")
    if is_said(kind):
        draft.trains("importance_sampling_mode", arriving(kind), "loss_fn.truncated_importance_sampling_type", kind)


def _updates(draft: Draft, root: Node, *, inherits: bool) -> None:
    asynchronous = root.get("grpo", "async_grpo")
    enabled = within(asynchronous, "enabled")
    told = arriving(enabled) if enabled is not None else None
    if isinstance(told, Unknown) or (told is None and inherits):
        reason = "grpo.async_grpo.enabled is not in this file"
        draft.trains("weight_updates", Unknown(reason), reason)
        return
    if told is not True:
        note = "synchronous GRPO: generation has finished, and finish_generation resets the prefix cache"
        draft.trains("weight_updates", "between rollouts", note)
        draft.trains("resets_prefix_cache", True, note)
        return
    flying = known(asynchronous.get("in_flight_weight_updates"), False) if asynchronous is not None else False
    note = "grpo.async_grpo.in_flight_weight_updates"
    draft.trains("weight_updates", "in flight" if flying else "between rollouts", note, asynchronous)
    recompute = within(asynchronous, "recompute_kv_cache_after_weight_updates")
    note = "grpo.async_grpo.recompute_kv_cache_after_weight_updates; without it the KV cache is kept (#4018)"
    draft.trains("resets_prefix_cache", arriving(recompute) if recompute is not None else False, note, recompute)


def _generation_gpus(root: Node) -> int | None:
    """GPUs that generate: all of the cluster, or those set aside; None where not told (NeMo-RL algorithms/grpo.py)."""
    colocated = root.get("policy", "generation", "colocated")
    cluster = root.get("cluster")
    nodes, gpus = known(within(cluster, "num_nodes")), known(within(cluster, "gpus_per_node"))
    shared = known(within(colocated, "enabled"), True)
    if shared is False:
        own = within(colocated, "resources")
        # One node is shared with the trainer, and needs no number of nodes.
        nodes, gpus = known(within(own, "num_nodes"), 1 if nodes == 1 else None), known(within(own, "gpus_per_node"))
    told = shared in (True, False) and isinstance(nodes, int) and isinstance(gpus, int)
    return nodes * gpus if told else None
