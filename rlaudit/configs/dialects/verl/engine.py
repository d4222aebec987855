"""The engine arguments that verl hands to vLLM: fields of `rollout`, then `engine_kwargs.vllm`, then code.

Fields and code as read in verl's vllm_async_server.py (0.9.1 and main of 2026-08); values go through
build_cli_args_from_config, which skips None always and False in v0.6.0 to v0.9.0 (verl#7508, fixed in 0.9.1 for
arguments typed `bool | None`).
"""

from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.verl.own_arguments import IN_PROCESS_EXECUTOR, NOTHING, agreed
from rlaudit.configs.dialects.verl.release import FIRST_SERVER, Release
from rlaudit.configs.draft import Draft, arriving, by_code, by_file, is_said, known, moved_default
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.framework_source.checkout import shown
from rlaudit.configs.omitted_flag import dropped, false_is_default, is_optional_bool
from rlaudit.configs.rollout_config import Loss, Origin, Setting
from rlaudit.configs.syntax.node import Node, Unknown, entries, within
from rlaudit.vllm.milestones import LOGPROBS_MODE

SERVER = "verl vllm_async_server.py (main 2026-08)"
SPMD = "verl vllm_rollout_spmd.py (up to v0.6)"
# rollout's field -> vLLM's argument
FIELDS: dict[str, str] = {
    "dtype": "dtype",
    "load_format": "load_format",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "enable_chunked_prefill": "enable_chunked_prefill",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "enable_prefix_caching": "enable_prefix_caching",
    "enable_sleep_mode": "enable_sleep_mode",
    "logprobs_mode": "logprobs_mode",
    "enforce_eager": "enforce_eager",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "disable_log_stats": "disable_log_stats",
    "tensor_model_parallel_size": "tensor_parallel_size",
    "data_parallel_size": "data_parallel_size",
    "scheduling_policy": "scheduling_policy",
    "quantization": "quantization",
    "seed": "seed",
}
# Defaults that every release from v0.5 to 0.9.1 has, for configs whose base is verl's own.
_DEFAULTS: dict[str, Any] = {
    "dtype": "bfloat16",
    "enable_prefix_caching": True,
    "enable_chunked_prefill": True,
    "gpu_memory_utilization": 0.5,
    "max_num_batched_tokens": 8192,
    "tensor_model_parallel_size": 2,
    "disable_log_stats": True,
}
# Defaults that changed: with the first release that has the newer one.
_CHANGED: dict[str, tuple[Any, Version, Any]] = {
    "enforce_eager": (True, Version("0.6.0"), False),
    "load_format": ("dummy_dtensor", Version("0.6.0"), "dummy"),
    "max_num_seqs": (1024, Version("0.9.1"), 256),
}
# The room of a prompt and of its response, as a rollout and as the data name them.
_LENGTHS = ("prompt_length", "response_length")
_DATA_LENGTHS = ("max_prompt_length", "max_response_length")
# What verl rounds up to (vLLM takes 1 as well in newer releases).
_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


def engine_arguments(draft: Draft, root: Node, vllm: Version, release: Release, *, inherits: bool) -> None:
    """Fill in the engine's settings. inherits: verl's own defaults stand behind the file."""
    rollout = root.get("actor_rollout_ref", "rollout")
    for field, name in FIELDS.items():
        node = within(rollout, field)
        if node is not None and not release.hands_on(name, field):
            assert release.engine is not None
            reason = f"{shown(release.engine.path)} is not seen to hand rollout.{field} on"
            draft.engine.by_file(name, node, Unknown(reason), reason)
            continue
        if node is not None and node.value is None and release.builds_flags is not False:
            # Its serializer gives no flag for a null (verl 0.7.1 workers/rollout/vllm_rollout/utils.py).
            draft.engine[name] = Setting(name, None, None, Origin.FRAMEWORK, node.place, "no flag is passed for a null")
            continue
        if node is not None:
            draft.engine[name] = _serialized(draft, name, node, vllm, release)
        elif inherits and field in _DEFAULTS:
            draft.engine.by_code(name, _DEFAULTS[field], f"rollout.{field} of verl's rollout.yaml, v0.5 to 0.9.1")
        elif inherits and field in _CHANGED:
            draft.engine[name] = _changed(field, name, release)
    _logprobs_mode(draft, release, vllm, inherits=inherits)
    _by_the_code(draft, root, vllm, release)
    kwargs = within(rollout, "engine_kwargs", "vllm")
    for key, node in entries(kwargs):
        _passed_on(draft, key, node, vllm, release)


def _changed(field: str, name: str, release: Release) -> Setting:
    older, since, newer = _CHANGED[field]
    said = f"rollout.{field} is not in this file; verl's default is {older} before v{since} and {newer} from then on"
    is_newer = True if release.first >= since else False if release.last < since else None
    note = said if is_newer is None else f"{said} ({release.why()})"
    return by_code(name, moved_default(is_newer, older, newer, said), note)


def _passed_on(draft: Draft, key: str, node: Node, vllm: Version, release: Release) -> None:
    """One of engine_kwargs.vllm: it replaces the field's value, and may spell a flag's negation itself."""
    spelt = key.replace("-", "_")
    if release.passes_engine_kwargs is False:
        reason = f"the server of verl before v0.6.0 does not read engine_kwargs.vllm ({release.why()})"
        draft.lose(canonical(key), node, Loss.NOT_PASSED, reason)
        return
    if spelt.startswith("no_") and node.value is True:
        _negated(draft, spelt, node, release)
        return
    if node.value is not None:
        name = canonical(key)
        draft.engine[name] = _serialized(draft, name, node, vllm, release)


def _negated(draft: Draft, spelt: str, node: Node, release: Release) -> None:
    """`no_x: true` is a flag where flags are built, and an argument that nobody has where keywords are passed."""
    name = canonical(spelt.removeprefix("no_"))
    if release.builds_flags:
        draft.engine.by_file(name, node, value=False, note=f"passed as --{spelt.replace('_', '-')}")
        return
    if release.builds_flags is False:
        reason = f"vLLM's LLM class has no argument {spelt} and raises a TypeError; write `{name}: false`"
        draft.lose(spelt, node, Loss.UNKNOWN_KEY, reason)
        return
    reason = (
        f"`{spelt}: true` is --{spelt.replace('_', '-')} to verl's server of v0.6.0 and later, and a TypeError in an "
        f"in-process engine and before; this config does not tell which it is ({release.why()})"
    )
    draft.engine.by_file(name, node, value=Unknown(reason), note=reason)


def _serialized(draft: Draft, name: str, node: Node, vllm: Version, release: Release) -> Setting:
    if node.value is None:
        return by_file(name, node, note="null: no flag is passed")
    if name == "seed":
        adds = agreed(release, "addition to the seed", lambda row: row.adds_index)
        return by_file(name, node, note=f"{SERVER} adds the index of the replica" if adds is True else "")
    if node.value is not False or release.in_process or false_is_default(name, vllm):
        return by_file(name, node)
    if release.drops_false is False and is_optional_bool(name, vllm):
        return by_file(name, node, note=f"passed as --no-{name.replace('_', '-')}; {release.why()}")
    if release.drops_false or (not is_optional_bool(name, vllm) and release.in_process is False):
        fixed = "0.9.1 hands it on" if is_optional_bool(name, vllm) else "0.9.1 still does, as it is a plain bool"
        reason = f"verl v0.6.0 to v0.9.0 skips false values when it builds vLLM's flags; {fixed} ({release.why()})"
        return dropped(draft, name, node, vllm, reason)
    others = "0.9.1 hands it on" if release.first >= Version("0.7.0") else "before v0.7.0 an in-process engine gets it"
    reason = (
        f"verl v0.6.0 to v0.9.0 skips `{name}: false` when it builds vLLM's flags, so vLLM's own default holds; "
        f"{others}, and this file does not tell the release"
    )
    draft.lose(name, node, Loss.FALSE_DROPPED, reason)
    return by_file(name, node, value=Unknown(reason), note=reason)


def _logprobs_mode(draft: Draft, release: Release, vllm: Version, *, inherits: bool) -> None:
    if "logprobs_mode" in draft.engine or vllm < LOGPROBS_MODE:
        return
    sets = release.sets_logprobs_mode
    if sets is False:
        draft.not_seen.append(
            f"whether verl is patched to set logprobs_mode: before v0.7.0 it does not ({release.why()})"
        )
    elif sets and inherits:
        note = f"rollout.logprobs_mode defaults to processed_logprobs since v0.7.0 (verl#4755; {release.why()})"
        draft.engine.by_code("logprobs_mode", "processed_logprobs", note)
    elif inherits:
        reason = "verl sets processed_logprobs since v0.7.0 and nothing before, and this file does not tell the release"
        draft.engine.by_code("logprobs_mode", Unknown(reason), reason)


def _by_the_code(draft: Draft, root: Node, vllm: Version, release: Release) -> None:
    rollout = root.get("actor_rollout_ref", "rollout") or root
    expert = rollout.get("expert_parallel_size")
    if expert is not None:
        value = arriving(expert)
        enabled = value if isinstance(value, Unknown) or not isinstance(value, int) else value > 1
        draft.engine.by_file(
            "enable_expert_parallel", expert, value=enabled, note="expert_parallel_size > 1 turns it on"
        )
    tokenizer = rollout.get("skip_tokenizer_init")
    if tokenizer is not None and tokenizer.value is True:
        draft.lose("skip_tokenizer_init", tokenizer, Loss.OVERRULED, f"{SERVER} always says False")
    pipeline = rollout.get("pipeline_model_parallel_size")
    if pipeline is not None and known(pipeline, 1) != 1:
        draft.lose("pipeline_parallel_size", pipeline, Loss.NOT_PASSED, "verl refuses it for vLLM")
    images = rollout.get("limit_images")
    if is_said(images):
        draft.engine.by_file("limit_mm_per_prompt", images, value={"image": arriving(images)})
    sizes = rollout.get("cudagraph_capture_sizes")
    graphs: dict[str, Any] = {"cudagraph_mode": "FULL_AND_PIECEWISE"} if vllm >= Version("0.11.0") else {}
    if is_said(sizes):
        graphs["cudagraph_capture_sizes"] = arriving(sizes)
    sets = agreed(release, "choice of CUDA graphs", lambda row: row.sets_graphs)
    if isinstance(sets, Unknown) and "cudagraph_capture_sizes" in graphs:
        draft.engine.by_code("compilation_config", sets, SERVER)
    elif graphs and sets is True:  # where it is open, vLLM's own default is the same mode
        draft.engine.by_code("compilation_config", graphs, f"{SERVER} sets it")
    _switched_on(draft, root, rollout, release)
    if release.in_process:
        _in_process(draft, rollout, release)
        _context_length(draft, root, rollout, release)
    else:
        _by_its_release(draft, rollout, release)


def _by_its_release(draft: Draft, rollout: Node, release: Release) -> None:
    """What a server, or an engine that may be in the trainer's process, is given by verl itself."""
    if "enable_sleep_mode" not in draft.engine:
        _sleep_mode(draft, rollout, release, SERVER)
    _seed(draft, release)
    executor = agreed(release, "executor", lambda row: row.executor)
    draft.engine.by_code("distributed_executor_backend", executor, f"{SERVER} sets it")


def _sleep_mode(draft: Draft, rollout: Node, release: Release, where: str) -> None:
    """free_cache_engine where the release asks it, True where it does not."""
    frees = rollout.get("free_cache_engine")
    always = agreed(release, "sleep mode", lambda row: True if row.sleeps else "that of free_cache_engine")
    if frees is None or arriving(frees) is True or always is True:
        draft.engine.by_code("enable_sleep_mode", True, f"{where} sets it")
    else:
        value = always if isinstance(always, Unknown) else arriving(frees)
        draft.engine.by_file("enable_sleep_mode", frees, value, f"{where}: free_cache_engine")


def _seed(draft: Draft, release: Release) -> None:
    """The engine's seed where the config has none."""
    seed = agreed(release, "seed", lambda row: row.seed)
    if seed != NOTHING:
        adds = agreed(release, "addition to the seed", lambda row: row.adds_index)
        index = ", and the index of the replica is added" if adds is True else ""
        draft.engine.unless_set("seed", seed, f"verl's own where rollout.seed is not written{index}")


def _switched_on(draft: Draft, root: Node, rollout: Node, release: Release) -> None:
    """Arguments that follow from a switch elsewhere in the config."""
    replay = rollout.get("enable_rollout_routing_replay")
    if replay is not None and replay.value is True:
        name = "enable_return_routed_experts"
        draft.engine.by_file(name, replay, note="rollout.enable_rollout_routing_replay")
    model = root.get("actor_rollout_ref", "model")
    rank = (model.get("lora", "rank") or model.get("lora_rank")) if model is not None else None
    merges = known(within(model, "lora", "merge"))
    if rank is not None and merges is not True and known(rank, 0):
        draft.engine.by_file("enable_lora", rank, True, "a LoRA rank above 0 turns it on")
        draft.engine.unless_set("max_loras", 1, "verl serves one adapter")
        note = "verl rounds the LoRA rank up to one that vLLM takes"
        draft.engine.by_file("max_lora_rank", rank, _largest_rank(known(rank), release), note)
    drafts = rollout.get("mtp") or (within(model, "mtp"))
    if drafts is not None and known(drafts.get("enable")) is True and known(drafts.get("enable_rollout")) is True:
        told = {key: known(drafts.get(key)) for key in ("method", "num_speculative_tokens")}
        draft.engine.by_file("speculative_config", drafts, told, "mtp.enable_rollout")


def _largest_rank(rank: Any, release: Release) -> Any:
    """The max_lora_rank of an adapter: its rank, from v0.6.1 on rounded up to the next of vLLM's."""
    above = next((size for size in _LORA_RANKS if isinstance(rank, int) and size >= rank), None)
    if above is None:
        return Unknown("the LoRA rank is none that vLLM takes, or is not told")
    if above == rank or release.last < Version("0.6.0"):
        return rank
    return above if release.first >= Version("0.6.1") else Unknown("verl rounds the LoRA rank up since v0.6.1")


def _in_process(draft: Draft, rollout: Node, release: Release) -> None:
    """What verl's vllm_rollout_spmd.py says to `LLM(...)`, up to v0.6."""
    _sleep_mode(draft, rollout, release, SPMD)
    fixed = {"disable_custom_all_reduce": True, "distributed_executor_backend": IN_PROCESS_EXECUTOR}
    for name, value in fixed.items():
        draft.engine.unless_set(name, value, SPMD)
    _seed(draft, release)
    load = rollout.get("load_format")
    if load is not None and isinstance(load.value, str) and load.value.startswith("dummy"):
        note = f"{SPMD} takes every dummy for this one"
        shortened = "dummy" if release.engine is None or load.value == "dummy" else Unknown(note)
        if release.engine is not None or release.first >= FIRST_SERVER:
            draft.engine.by_file("load_format", load, shortened, note)
    draft.engine.unless_set("enable_prefix_caching", True, SPMD)


def _context_length(draft: Draft, root: Node, rollout: Node, release: Release) -> None:
    """In process, what is not written is the room of prompt and response."""
    if is_said(rollout.get("max_model_len")):
        return
    nodes = [rollout.get(own) or root.get("data", data) for own, data in zip(_LENGTHS, _DATA_LENGTHS, strict=True)]
    lengths = [arriving(node) for node in nodes if node is not None]
    if not lengths:
        return
    told = len(lengths) == len(_LENGTHS) and all(isinstance(one, int) for one in lengths)
    room = sum(lengths) if told else Unknown(f"{SPMD}: prompt_length + response_length, which this file does not tell")
    draft.engine.by_code("max_model_len", room, f"{SPMD}: prompt_length + response_length")


def overridden_generation(draft: Draft, max_tokens: Any, release: Release) -> None:
    """verl's server overrides the model's generation_config.json with the rollout's own sampling, in every request."""
    keys = ("temperature", "top_k", "top_p")
    values = {key: draft.sampling[key].value for key in keys if key in draft.sampling}
    unknown = next((value for value in values.values() if isinstance(value, Unknown)), None)
    values |= {"repetition_penalty": 1.0}
    if max_tokens is not None and not isinstance(max_tokens, Unknown):
        values["max_new_tokens"] = max_tokens
    note = f"{SERVER}:_get_override_generation_config"
    if release.in_process is None:
        unknown = Unknown(f"{note}, and an engine in the trainer's process gets none; {release.why()}")
    draft.engine.unless_set("override_generation_config", values if unknown is None else unknown, note)
