"""NeMo-RL: YAML with `policy.generation.vllm_cfg`, inherited over `defaults: parent.yaml`, or overrides on a command.

`vllm_cfg` is read key by key (vllm_worker.py), so a key that it does not know has no effect; `vllm_kwargs` go to vLLM
as they are. logprobs_mode was `processed_logprobs` in code up to 2026-08-05 (#3290) and is only in the YAML since.
"""

from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.nemo_rl.trainer import trainer_facts
from rlaudit.configs.draft import Draft, arriving, known
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.hydra_defaults import Composed
from rlaudit.configs.hydra_dotlist import overridden, take_environment
from rlaudit.configs.inherited_paths import inherited, overriding
from rlaudit.configs.mapping_writer import dotlist_writer, prefixed, two_mappings
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.own_backend import VLLM, runs_vllm, with_own_backend
from rlaudit.configs.python_kwargs import hand_over, has_argument, neutral_sampling
from rlaudit.configs.rollout_config import Loss, Lost, RolloutConfig
from rlaudit.configs.second_engines import take_second_engines
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown, entries, within
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.spelling import Write
from rlaudit.vllm.resolution.engine import has_v0

if TYPE_CHECKING:
    from rlaudit.configs.syntax.shell_command import Command

_KEYS = "policy.generation."
WORKER = "NeMo-RL vllm_worker.py (7ea279a)"
_FIELDS = {
    "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "max_model_len": "max_model_len",
    "enforce_eager": "enforce_eager",
    "enable_prefix_caching": "enable_prefix_caching",
    "logprobs_mode": "logprobs_mode",
    "load_format": "load_format",
    "skip_tokenizer_init": "skip_tokenizer_init",
}
_OPTIONS = (
    "loss_fn.use_importance_sampling_correction", "loss_fn.truncated_importance_sampling_ratio",
    "loss_fn.truncated_importance_sampling_type", "grpo.num_generations_per_prompt", "grpo.async_grpo",
    "loss_fn.ratio_clip_min", "loss_fn.ratio_clip_max", "loss_fn.ratio_clip_c", "loss_fn.reference_policy_kl_penalty",
    "loss_fn.use_on_policy_kl_approximation", "loss_fn.token_level_loss", "loss_fn.sequence_level_importance_ratios",
    "loss_fn.force_on_policy_ratio", "grpo.num_prompts_per_step", "grpo.seq_logprob_error_threshold",
    "policy.train_global_batch_size", "policy.max_total_sequence_length",
    "policy.generation.backend", "policy.generation.vllm_cfg.async_engine",
)  # fmt: skip
_HTTP_SERVER = {
    "reasoning_parser",
    "reasoning_parser_plugin",
    "tool_call_parser",
    "tool_parser_plugin",
    "chat_template",
}
FILES = FrameworkFiles(
    "nemo_rl", ("nemo_rl/models/generation/vllm/vllm_worker.py", "nemo_rl/models/generation/vllm.py")
)
_FIRST_WITHOUT_CODE = Version("0.26.0")


def recognise(source: Source) -> bool:
    """Whether `policy.generation` has a `vllm_cfg` or `vllm_kwargs`, its own or a parent's."""
    if "defaults" in source.text and (config := inherited(source)) is not None and _generates(config.root):
        return True
    if "generation" not in source.text or "vllm_" not in source.text:
        return False
    root = mapping_of(source)
    return (root is not None and _generates(root)) or any(_generates(one.root) for one in overridden(source, _KEYS))


def _generates(root: Node) -> bool:
    generation = root.get("policy", "generation")
    return generation is not None and any(generation.get(key) is not None for key in ("vllm_cfg", "vllm_kwargs"))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The generation workers' engine, all with the same arguments except for their seeds."""
    own = mapping_of(source)
    config = inherited(source)
    if own is not None and config is not None:
        home = own.get("policy", "generation") or own
        write = two_mappings(home.get("vllm_cfg"), _spell_field, home.get("vllm_kwargs"), source.text)
        return _engine(source, config, home.key or home.place, write, None, vllm)
    found: list[RolloutConfig] = []
    for one in overridden(source, _KEYS):
        if _generates(one.root):
            write = dotlist_writer(one.command, prefixed(f"++{_KEYS}vllm_kwargs."), source)
            found += _engine(source, overriding(source, one), one.command.place, write, one.command, vllm)
    return tuple(found)


def _engine(
    source: Source, config: Composed, place: Place, write: Write, command: "Command | None", vllm: Version
) -> tuple[RolloutConfig, ...]:
    generation = config.root.get("policy", "generation")
    backend = known(within(generation, "backend"), VLLM)
    if generation is None or not runs_vllm(backend):
        return ()
    draft = Draft("nemo_rl", source.path, parts=config.parts)
    cfg = generation.get("vllm_cfg")
    _fields(draft, cfg, vllm, inherits=bool(config.gap))
    hand_over(draft, generation.get("vllm_kwargs"), "vllm_kwargs go to vLLM as they are")
    _by_the_code(draft, config, vllm)
    _sampling(draft, generation, inherits=bool(config.gap))
    served = known(within(cfg, "expose_http_server"))
    if served is not True and not config.gap:
        neutral_sampling(draft, f"{WORKER} builds SamplingParams itself")
    elif served is True:
        draft.not_seen.append("sampling of the requests that reach vllm_cfg.expose_http_server from elsewhere")
    trainer_facts(draft, config.root, inherits=bool(config.gap))
    draft.list_options(config.root, *_OPTIONS)
    take_second_engines(draft, config.root, "policy")
    for missing in config.missing:
        inherits = "which `defaults:` inherits" if command is None else "on which the overrides are made"
        draft.not_seen.append(f"{missing}, {inherits}, is not beside this file")
    if command is not None:
        take_environment(draft, source, command)
    draft.not_seen += config.limits
    checkout = FILES.checkout(source)
    hold_against(draft, FILES, checkout, vllm)
    asynchronous = known(within(cfg, "async_engine"))
    draft.bare = asynchronous is True
    model = config.root.get("policy", "model_name")
    done = draft.done(model=model, offline=asynchronous is not True, place=place, write=write)
    return (with_own_backend(done, "NeMo-RL", f"{_KEYS}backend", backend, checkout),)


def _spell_field(name: str) -> str | None:
    return {"dtype": "precision"}.get(name) or next((key for key, field in _FIELDS.items() if field == name), None)


def _fields(draft: Draft, cfg: Node | None, vllm: Version, *, inherits: bool) -> None:
    for key, node in entries(cfg):
        if key in _FIELDS:
            draft.engine.by_file(_FIELDS[key], node)
        elif key == "precision":
            _precision(draft, node)
        elif key == "kv_cache_dtype":
            if node.value not in (None, "auto"):
                draft.engine.by_file(key, node, note=f"{WORKER} passes it on for fp8 weights and fp8 KV caches")
        elif key == "expert_parallel_size":
            size = arriving(node)
            on = size > 1 if isinstance(size, int) else size
            draft.engine.by_file("enable_expert_parallel", node, on, "1 is off")
        elif key == "use_deep_gemm":
            _deep_gemm(draft, cfg, node)
        elif key not in _HTTP_SERVER and has_argument(key, vllm):
            draft.lose(key, node, Loss.UNKNOWN_KEY, f"{WORKER} does not read vllm_cfg.{key}; vllm_kwargs would pass it")
    prefix = within(cfg, "enable_prefix_caching")
    note = f"{WORKER}:84-88: on where the GPU's compute capability is 8 or more"
    if prefix is not None and prefix.value is None:
        draft.engine.by_file("enable_prefix_caching", prefix, True, note)
    elif prefix is None and not inherits:
        draft.engine.by_code("enable_prefix_caching", True, note)


def _deep_gemm(draft: Draft, cfg: Node | None, node: Node) -> None:
    """Exported where it is true and the weights are fp8; a false leaves the variable as it is."""
    quantized = known(within(cfg, "precision")) == "fp8"
    told = arriving(node)
    if isinstance(told, Unknown) or (told and quantized):
        value = told if isinstance(told, Unknown) else "1"
        draft.environment.by_file("VLLM_USE_DEEP_GEMM", node, value, "exported for fp8 weights")
    elif told:
        draft.lose("use_deep_gemm", node, Loss.NOT_PASSED, "NeMo-RL reads it where vllm_cfg.precision is fp8")
    else:
        draft.options.by_file("vllm_cfg.use_deep_gemm", node)


def _precision(draft: Draft, node: Node) -> None:
    if node.value == "fp8":
        note = "vllm_cfg.precision fp8: quantized weights, activations in bfloat16"
        draft.engine.by_file("dtype", node, "bfloat16", note)
        draft.engine.by_file("quantization", node, "fp8", note)
    else:
        draft.engine.by_file("dtype", node, note="vllm_cfg.precision")


def _by_the_code(draft: Draft, config: Composed, vllm: Version) -> None:
    for name, value in (("enable_sleep_mode", True), ("trust_remote_code", True), ("disable_log_stats", False)):
        draft.engine.unless_set(name, value, WORKER)
    _executor(draft, config)
    reason = "every worker gets its own seed: 1024 x node + index of the engine"
    draft.engine.unless_set("seed", Unknown(reason), f"{WORKER}: {reason}")
    if "logprobs_mode" not in draft.engine:
        base = "its base config may say it; " if config.gap else ""
        if config.gap or vllm < _FIRST_WITHOUT_CODE:
            reason = (
                f"vllm_cfg.logprobs_mode is not in this file: {base}NeMo-RL set processed_logprobs in code up to "
                "2026-08-05 (#3290), later releases leave vLLM's raw_logprobs"
            )
            draft.engine.by_code("logprobs_mode", Unknown(reason), reason)
    if config.gap:
        for name, published in (("enable_prefix_caching", "null (on)"), ("enforce_eager", "false"), ("dtype", "bf16")):
            if name not in draft.engine:
                reason = f"{config.gap}; grpo_math_1B.yaml of 7ea279a says {published}"
                draft.engine.by_code(name, Unknown(reason), reason)
    note = f"{WORKER}:configure_worker"
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING",):
        draft.environment.by_code(name, "0", note)
    if has_v0(vllm):
        source = "NRL_VLLM_USE_V1 is 1 where the shell does not set it (NeMo-RL docs/model-quirks.md)"
        draft.environment.by_code("VLLM_USE_V1", "1", source)
    draft.environment.by_code("VLLM_ALLOW_INSECURE_SERIALIZATION", "1", WORKER)


def _executor(draft: Draft, config: Composed) -> None:
    """Ray where an engine has several ranks, whatever vllm_kwargs say; else vLLM's own choice."""
    name = "distributed_executor_backend"
    said = draft.engine.pop(name, None)
    sizes = [draft.engine.get(size) for size in ("tensor_parallel_size", "pipeline_parallel_size")]
    values = [size.value if size is not None else None for size in sizes]
    note = f"{WORKER} sets ray where tensor_parallel_size x pipeline_parallel_size is above 1, and null otherwise"
    unknown = next((value for value in values if isinstance(value, Unknown)), None)
    if any(isinstance(value, int) and value > 1 for value in values):
        draft.engine.by_code(name, "ray", note)
    elif unknown is not None or (config.gap and None in values):
        told = (
            unknown.reason
            if unknown is not None
            else f"its base config may say how many ranks an engine has: {config.gap}"
        )
        draft.engine.by_code(name, Unknown(f"{note}; {told}"), note)
    if said is not None and said.place is not None and said.written is not None:
        draft.lost.append(Lost(name, said.written, said.place, Loss.OVERRULED, note))


def _sampling(draft: Draft, generation: Node, *, inherits: bool) -> None:
    names: dict[str, str] = {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "max_new_tokens": "max_tokens",
        "stop_token_ids": "stop_token_ids",
        "stop_strings": "stop",
    }
    for key, name in names.items():
        node = generation.get(key)
        if node is None:
            continue
        value: Any = arriving(node)
        if key == "top_k" and value is None:
            draft.sampling.by_file(name, node, -1, "null is no top-k")
        elif value is not None:
            draft.sampling.by_file(name, node)
    if inherits:
        for name in ("temperature", "top_p", "top_k"):
            if name not in draft.sampling:
                reason = f"policy.generation.{name} is in a base config that is not beside this file"
                draft.sampling.by_code(name, Unknown(reason), reason)
    draft.sampling.by_code("logprobs", 0, f"{WORKER}:_build_sampling_params")


DIALECT = Dialect("nemo_rl", "NeMo-RL", 10, recognise, read)
