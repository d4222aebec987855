"""What AReaL's trainer does with the rollout's logprobs, and how weights reach the engine."""

from packaging.version import Version

from rlaudit.configs.draft import Draft, arriving, is_said, known
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.vllm.milestones import PAUSE_GENERATION


def trainer_facts(draft: Draft, root: Node, vllm: Version) -> None:
    """Facts from the config and from AReaL's code (cbff54d)."""
    draft.trains("divides_by_temperature", _divides(draft, root), "AReaL divides the logits by actor.temperature")
    draft.trains("replays_filters", False, "AReaL takes its softmax over the full vocabulary")
    draft.trains("uses_rollout_logprobs", True, "the behaviour policy's logprobs enter loss and metrics")
    draft.trains("logs_mismatch", True, "AReaL trainer/ppo/actor.py:675-745 logs logp_diff and behave_*")
    draft.trains("salts_prefix_cache", False, "AReaL sends no cache salt")
    recompute = root.get("actor", "recompute_logprob")
    if recompute is not None:
        draft.trains("recomputes_old_logprobs", arriving(recompute), "actor.recompute_logprob", recompute)
    _correction(draft, root)
    dtype = root.get("actor", "dtype")
    if dtype is not None:
        draft.trains("dtype", arriving(dtype), "actor.dtype", dtype)
    else:
        draft.trains("dtype", "bfloat16", "AReaL's default of actor.dtype")
    note = "AReaL areal_vllm_server.py pauses, aborts running requests and clears the cache around every update"
    draft.trains("weight_updates", "in flight", f"{note}; the client resumes aborted requests")
    draft.trains("resets_prefix_cache", True, note)
    draft.trains("pause_mode", "abort", note)
    draft.trains("pause_clears_cache", True, note)
    if vllm >= PAUSE_GENERATION:
        note = "AReaL areal_vllm_server.py:168-316 (cbff54d, for vLLM 0.19.1)"
        draft.trains("pause_arguments", ["wait_for_inflight_requests", "clear_cache"], note)


def _divides(draft: Draft, root: Node) -> object:
    node = root.get("actor", "temperature")
    trainer = 1.0 if node is None else arriving(node)
    rollout = draft.sampling["temperature"].value
    if isinstance(trainer, Unknown) or isinstance(rollout, Unknown):
        return trainer if isinstance(trainer, Unknown) else rollout
    if trainer == rollout:
        return True
    where = "actor.temperature" if node is not None else "AReaL's default of actor.temperature"
    return Unknown(f"the trainer divides by {trainer} ({where}), the rollout samples at {rollout}")


def _correction(draft: Draft, root: Node) -> None:
    rejects = root.get("actor", "rejection_sampling")
    decoupled = root.get("actor", "use_decoupled_loss")
    cap = root.get("actor", "behave_imp_weight_cap")
    for node, kind in ((rejects, "rejection_sampling"), (cap, "behave_imp_weight_cap")):
        if is_said(node):
            draft.trains("importance_sampling_correction", True, f"actor.{kind}", node)
            action = known(node.get("action"), "mask") if kind == "rejection_sampling" else "cap"
            draft.trains("importance_sampling_mode", action, f"actor.{kind}", node)
            return
    if decoupled is not None:
        draft.trains("importance_sampling_correction", arriving(decoupled), "actor.use_decoupled_loss", decoupled)
