"""What verl's trainer does with the rollout's logprobs, how weights reach the engine, and which correction is on."""

from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.verl.own_arguments import agreed
from rlaudit.configs.dialects.verl.release import Release
from rlaudit.configs.draft import Draft, arriving, by_code, by_file, is_said, known
from rlaudit.configs.syntax.node import Node, Unknown, within
from rlaudit.vllm.milestones import PAUSE_GENERATION

_MEGATRON_SEEDS = Version("0.4.1")
_ACTOR = "verl dp_actor.py divides the logits by rollout.temperature"


def trainer_facts(draft: Draft, root: Node, vllm: Version, release: Release, *, inherits: bool) -> None:
    """Facts from the config and from verl's code."""
    draft.trains("divides_by_temperature", True, _ACTOR)
    draft.trains("replays_filters", False, "verl's actor takes its softmax over the full vocabulary")
    draft.trains("salts_prefix_cache", False, "verl sends no cache salt")
    _old_logprobs(draft, root, release, inherits=inherits)
    _correction(draft, root, inherits=inherits)
    _precision(draft, root)
    _updates(draft, root, vllm, release)
    _replicas(draft, root)
    if release.in_process:
        _generators(draft, root, release)
    elif agreed(release, "addition to the seed", lambda row: row.adds_index) is True:
        draft.trains("seeds_replicas", True, "verl vllm_async_server.py: rollout.seed plus the index of the replica")


def _generators(draft: Draft, root: Node, release: Release) -> None:
    """vLLM in the trainer's process draws from the trainer's CUDA generator, which verl seeds by data-parallel rank
    whatever the engine's seed is; with Megatron only from v0.4.1 on (sharding_manager/megatron_vllm.py:112).
    """
    actor = root.get("actor_rollout_ref", "actor")
    megatron = known(within(actor, "strategy")) == "megatron" or within(actor, "megatron") is not None
    if megatron and release.first < _MEGATRON_SEEDS:
        reason = f"with Megatron, verl seeds each data-parallel rank's generator from v{_MEGATRON_SEEDS} on"
        draft.trains("seeds_replicas", Unknown(f"{reason}; {release.why()}"), reason)
    else:
        draft.trains("seeds_replicas", True, "verl seeds the CUDA generator of each data-parallel rank by itself")


def _bypass(root: Node) -> bool | None:
    """Whether the trainer takes the rollout's logprobs for old ones, as rollout_correction tells it to."""
    told = root.get("algorithm", "rollout_correction", "bypass_mode")
    older = root.get("algorithm", "rollout_correction", "bypass_old_logprob_for_rollout")
    return _any_true(told, older)


def _any_true(*nodes: Node | None) -> bool | None:
    values = [arriving(node) for node in nodes if node is not None]
    if any(value is True for value in values):
        return True
    return None if any(isinstance(value, Unknown) for value in values) else False


def _old_logprobs(draft: Draft, root: Node, release: Release, *, inherits: bool) -> None:
    bypass = _bypass(root)
    # Only verl's fully asynchronous recipe asks for it; rLLM has a trainer loop of its own.
    told = root.get("actor_rollout_ref", "actor", "use_rollout_log_probs") if draft.framework != "rllm" else None
    direct = _any_true(told)
    stands_in = bypass or direct
    if bypass is not None and direct is not None:
        note = "rollout_correction.bypass_mode or actor.use_rollout_log_probs" if stands_in else "verl recomputes them"
        draft.trains("recomputes_old_logprobs", not stands_in, note)
    asked = root.get("actor_rollout_ref", "rollout", "calculate_log_probs")
    value: Any
    if asked is not None:
        value = arriving(asked)
    elif not inherits or release.last < Version("0.9.0"):
        value = False
    elif release.first >= Version("0.9.0"):
        value = True
    else:
        value = Unknown("rollout.calculate_log_probs is false up to v0.8 and true from v0.9 on")
    note = "rollout.calculate_log_probs" + ("" if asked is not None else " is not written")
    draft.trains("uses_rollout_logprobs", True if stands_in else value, note, asked)
    _logs(draft, value, bypass, direct, note, asked)
    if value is True:
        sampling_note = "rollout.calculate_log_probs asks for the logprob of the sampled token"
        draft.sampling["logprobs"] = (
            by_code("logprobs", 0, sampling_note) if asked is None else by_file("logprobs", asked, 0, sampling_note)
        )


def _logs(draft: Draft, value: Any, bypass: bool | None, direct: bool | None, note: str, asked: Node | None) -> None:
    """Which mismatch metric there is; value: whether rollouts come with logprobs."""
    if draft.framework == "rllm":
        if bypass:
            note = "rLLM verl_backend.py: bypass_mode makes offpolicy/* compare the rollout with itself, always zero"
            draft.trains("logs_mismatch", False, note)
        else:
            note = f"{note}: rLLM verl_backend.py logs offpolicy/* wherever rollouts come with logprobs"
            draft.trains("logs_mismatch", value, note, asked)
    elif bypass:
        note = "rollout_correction.bypass_mode: the actor logs rollout_corr/* of the current policy (core_algos.py)"
        draft.trains("logs_mismatch", True, note)
    elif direct:
        reason = "fully asynchronous recipes read actor.use_rollout_log_probs, and verl 0.9.1 does not read it at all"
        draft.trains("logs_mismatch", Unknown(reason), reason)
    else:
        draft.trains("logs_mismatch", value, f"{note}: the metrics need the rollout's and recomputed logprobs", asked)


def _correction(draft: Draft, root: Node, *, inherits: bool) -> None:
    """Three spellings in four releases: tis_imp_ratio_cap, rollout_is*, rollout_correction.*."""
    for path in (("rollout_correction", "rollout_is"), ("rollout_is",)):
        node = root.get("algorithm", *path)
        if node is None:
            continue
        value = arriving(node)
        if isinstance(value, Unknown):
            draft.trains("importance_sampling_correction", value, "algorithm." + ".".join(path), node)
            return
        threshold = root.get("algorithm", "rollout_is_threshold")
        on = value not in (None, False) and (len(path) == 2 or known(threshold, 0) is not None)
        rejects = known(root.get("algorithm", "rollout_correction", "rollout_rs")) is not None
        draft.trains("importance_sampling_correction", bool(on or rejects), "algorithm." + ".".join(path), node)
        if isinstance(value, str):
            draft.trains("importance_sampling_mode", value, "algorithm." + ".".join(path), node)
        return
    rejects_only = root.get("algorithm", "rollout_correction", "rollout_rs")
    if is_said(rejects_only):
        draft.trains("importance_sampling_correction", True, "algorithm.rollout_correction.rollout_rs", rejects_only)
        return
    cap = root.get("actor_rollout_ref", "actor", "tis_imp_ratio_cap")
    if cap is not None:
        value = arriving(cap)
        capped = value if isinstance(value, Unknown) else isinstance(value, int | float) and value > 0
        draft.trains("importance_sampling_correction", capped, "actor.tis_imp_ratio_cap", cap)
        return
    if inherits:
        draft.trains("importance_sampling_correction", False, "verl's default: no rollout correction")


def _precision(draft: Draft, root: Node) -> None:
    actor = root.get("actor_rollout_ref", "actor")
    node = actor.get("fsdp_config", "dtype") or actor.get("megatron", "dtype") if actor is not None else None
    if node is not None:
        draft.trains("dtype", arriving(node), "dtype of the actor's forward pass", node)
    else:
        draft.trains("dtype", "bfloat16", "verl's default for the actor's forward pass")
    draft.trains("head_dtype", draft.trainer["dtype"].value, "verl has no option for an fp32 output head")


def _updates(draft: Draft, root: Node, vllm: Version, release: Release) -> None:
    asynchronous = root.get("async_training")
    partial = known(root.get("async_training", "partial_rollout"))
    if asynchronous is None:
        note = "verl wakes the engine with new weights between rollouts and resets the prefix cache (wake_up)"
        draft.trains("weight_updates", "between rollouts", note)
        _reset(draft, root, release, note)
        return
    note = "verl checkpoint_engine/base.py:506-560: requests are aborted, then weights are updated"
    draft.trains("weight_updates", "between rollouts" if partial is False else "in flight", note, asynchronous)
    draft.trains("resets_prefix_cache", True, note)
    draft.trains("pause_mode", "abort", "verl vllm_async_server.py:abort_all_requests")
    draft.trains("pause_clears_cache", True, "verl vllm_async_server.py:abort_all_requests")
    if vllm >= PAUSE_GENERATION:
        arguments = ["wait_for_inflight_requests", "clear_cache"]
        note = "verl vllm_async_server.py calls pause_generation in a try that only logs a TypeError"
        draft.trains("pause_arguments", arguments, note)


def _reset(draft: Draft, root: Node, release: Release, note: str) -> None:
    """Engines that do not sleep are cleaned only by releases that clear the cache for itself."""
    frees = root.get("actor_rollout_ref", "rollout", "free_cache_engine")
    if frees is None or arriving(frees) is True:
        draft.trains("resets_prefix_cache", True, note)
        return
    what = "reset of the prefix cache where free_cache_engine is off"
    resets = agreed(release, what, lambda row: row.resets)
    if resets is False:
        note = "verl v0.5 and v0.6 put the engine to sleep, and reset its prefix cache, only with free_cache_engine"
    elif resets is True:
        note = "verl resets the prefix cache whatever free_cache_engine says"
    off = arriving(frees)
    if isinstance(off, Unknown) and resets is not True:
        resets = off
    draft.trains("resets_prefix_cache", resets, resets.reason if isinstance(resets, Unknown) else note, frees)


def _replicas(draft: Draft, root: Node) -> None:
    rollout = root.get("actor_rollout_ref", "rollout")
    nodes, gpus = known(root.get("trainer", "nnodes")), known(root.get("trainer", "n_gpus_per_node"))
    alone = known(within(rollout, "nnodes"))
    if isinstance(alone, int) and alone > 0:
        nodes, gpus = alone, known(within(rollout, "n_gpus_per_node"))
    ranks = [
        draft.engine[name].value for name in ("tensor_parallel_size", "data_parallel_size") if name in draft.engine
    ]
    devices = nodes * gpus if isinstance(nodes, int) and isinstance(gpus, int) else None
    draft.count_replicas(devices, ranks, "nodes x GPUs of the config", "nodes and GPUs are not both in this file")
