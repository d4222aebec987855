"""SkyRL: `generator.inference_engine.*` as overrides on a command line, or in YAML; before 2026 `generator.*`.

Values are set on vLLM's argument namespace (inference_servers/utils.py), so a written false arrives, and a misspelt key
of `engine_init_kwargs` vanishes: the namespace takes any name, and vLLM reads only its own. `enable_chunked_prefill`
is a field that is not handed on. Nothing sets logprobs_mode.
"""

from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.skyrl.trainer import trainer_facts
from rlaudit.configs.draft import Draft, arriving, known
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.hydra_dotlist import overridden, take_environment
from rlaudit.configs.mapping_writer import dotlist_writer, one_mapping, plain_spelling, prefixed
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.own_backend import VLLM, runs_vllm, with_own_backend
from rlaudit.configs.python_kwargs import has_argument
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown, entries, within
from rlaudit.vllm.catalogue import Catalogue

if TYPE_CHECKING:
    from rlaudit.configs.syntax.shell_command import Command

FILES = FrameworkFiles(
    "skyrl",
    engine=("skyrl/backends/skyrl_train/inference_servers/utils.py",),
    options=("skyrl/train/config/config.py#InferenceEngineConfig",),
)
UTILS = "SkyRL inference_servers/utils.py (a956457)"
# field -> (engine argument, default of InferenceEngineConfig)
_FIELDS: dict[str, tuple[str, Any]] = {
    "tensor_parallel_size": ("tensor_parallel_size", 1),
    "pipeline_parallel_size": ("pipeline_parallel_size", 1),
    "data_parallel_size": ("data_parallel_size", 1),
    "model_dtype": ("dtype", "bfloat16"),
    "gpu_memory_utilization": ("gpu_memory_utilization", 0.8),
    "enable_prefix_caching": ("enable_prefix_caching", True),
    "enforce_eager": ("enforce_eager", None),
    "max_num_batched_tokens": ("max_num_batched_tokens", 8192),
    "max_num_seqs": ("max_num_seqs", 1024),
    "enable_return_routed_experts": ("enable_return_routed_experts", None),
    "language_model_only": ("language_model_only", None),
    "distributed_executor_backend": ("distributed_executor_backend", None),
    "fully_sharded_loras": ("fully_sharded_loras", None),
}
_OLDER = {
    "inference_engine_tensor_parallel_size": "tensor_parallel_size",
    "inference_engine_pipeline_parallel_size": "pipeline_parallel_size",
    "inference_engine_data_parallel_size": "data_parallel_size",
    "inference_engine_expert_parallel_size": "expert_parallel_size",
    "num_inference_engines": "num_engines",
}
# Read for the endpoint before it was vLLM's own server (pop_openai_kwargs), beside vLLM's own names.
_FRONT = {"enable_auto_tools", "tool_parser", "reasoning_parser", "chat_template"}
_OPTIONS = (
    "trainer.algorithm.off_policy_correction", "trainer.algorithm.use_tis", "trainer.algorithm.tis_imp_ratio_cap",
    "trainer.algorithm.policy_loss_type", "trainer.algorithm.eps_clip_low", "trainer.algorithm.eps_clip_high",
    "trainer.algorithm.clip_ratio_c", "trainer.algorithm.use_kl_in_reward",
    "trainer.algorithm.use_kl_loss", "trainer.algorithm.kl_loss_coef", "trainer.algorithm.loss_reduction",
    "trainer.update_epochs_per_batch", "trainer.policy_mini_batch_size", "trainer.train_batch_size",
    "trainer.max_prompt_length", "generator.eval_sampling_params",
    "trainer.fully_async", "generator.n_samples_per_prompt", "generator.use_cache_salt",
    "generator.num_inference_engines", "generator.weight_sync_backend",
    "generator.inference_engine.num_engines", "generator.inference_engine.backend",
    "generator.inference_engine.weight_sync_backend", "generator.inference_engine.run_engines_locally",
)  # fmt: skip
_OWN = "generator.inference_engine."
_SIGNS = ("num_inference_engines", "inference_engine_tensor_parallel_size", "engine_init_kwargs", "weight_sync_backend")


def recognise(source: Source) -> bool:
    """Whether the generator's inference engine is configured, in either generation's words."""
    text = source.text
    if "generator" not in text or not any(word in text for word in ("inference_engine", *_SIGNS)):
        return False
    root = mapping_of(source)
    if root is not None and _section(root) is not None:
        return True
    return bool(_commands(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One config per YAML file or command."""
    own = mapping_of(source)
    if own is not None and _section(own) is not None:
        config = composed(source)
        one = _config(source, vllm, config.root, own, None, config.missing) if config is not None else None
        return (one,) if one is not None else ()
    found = (_config(source, vllm, root, root, command, ()) for command, root in _commands(source))
    return tuple(one for one in found if one is not None)


def _commands(source: Source) -> "list[tuple[Command, Node]]":
    if "generator." not in source.text:
        return []
    found = overridden(source, "generator.")
    return [(one.command, one.root) for one in found if _section(one.root) is not None]


def _section(root: Node) -> Node | None:
    """The engine's mapping: `generator.inference_engine`, or `generator` itself in the older layout."""
    generator = root.get("generator")
    if generator is None:
        return None
    inside = generator.get("inference_engine")
    if inside is not None and isinstance(inside.value, dict):
        return inside
    return generator if any(generator.get(sign) is not None for sign in _SIGNS) else None


def _config(
    source: Source, vllm: Version, root: Node, own: Node, command: "Command | None", missing: tuple[str, ...]
) -> RolloutConfig | None:
    section = _section(root)
    backend = known(within(section, "backend"), VLLM)
    if section is None or not runs_vllm(backend):
        return None
    draft = Draft("skyrl", source.path)
    older = root.get("generator", "inference_engine") is None
    _engine(draft, root, section, vllm, older=older)
    _sampling(draft, root)
    note = "SkyRL train/utils/utils.py:732-737"
    for name, value in (("VLLM_USE_V1", "1"), ("VLLM_ENABLE_V1_MULTIPROCESSING", "0"), ("VLLM_SERVER_DEV_MODE", "1")):
        draft.environment.by_code(name, value, note)
    _multiprocessing(draft, section.get("vllm_v1_disable_multiproc"), older=older)
    if command is not None:
        take_environment(draft, source, command)
    if command is not None and not older:
        _refused(draft, command)
    trainer_facts(draft, root, section, vllm)
    checkout = FILES.checkout(source)
    hold_against(draft, FILES, checkout, vllm)
    draft.list_options(root, *_OPTIONS)
    if known(section.get("run_engines_locally")) is False:
        draft.not_seen.append("the engines' own settings: run_engines_locally is false, so others started them")
    draft.not_seen += [f"{part}, which `defaults:` inherits, is not beside this file" for part in missing]
    home = _section(own) or own
    # Hydra wants the + of a new key; the typed parser of the newer layout refuses every +.
    prefix = "+generator." if older else _OWN
    write = (
        one_mapping(home.get("engine_init_kwargs"), plain_spelling, source.text)
        if command is None
        else dotlist_writer(command, prefixed(f"{prefix}engine_init_kwargs."), source)
    )
    done = draft.done(
        model=root.get("trainer", "policy", "model", "path"),
        place=command.place if command is not None else (home.key or home.place),
        write=write,
    )
    return with_own_backend(done, "SkyRL", "backend", backend, checkout)


def _executor(draft: Draft, *, older: bool) -> None:
    """Ray's for several ranks, which SkyRL places by itself; for one it moved."""
    if "distributed_executor_backend" in draft.engine:
        return
    sizes = [draft.engine[f"{kind}_parallel_size"].value for kind in ("tensor", "pipeline")]
    note = "SkyRL ray_wrapped_inference_engine.py (afa60b7): uni for one rank, else ray; later the option's default"
    if all(isinstance(size, int) for size in sizes):
        several = any(size > 1 for size in sizes)
        moved = Unknown("for one rank SkyRL takes uni up to spring 2026, and ray in its vLLM server since (a956457)")
        value: Any = "ray" if several else "uni" if older else moved
    else:
        value = Unknown("uni for one tensor and pipeline rank, else ray")
    draft.engine.by_code("distributed_executor_backend", value, note)


def _engine(draft: Draft, root: Node, section: Node, vllm: Version, *, older: bool) -> None:
    values = {_OLDER.get(key, key): node for key, node in section.items()}
    for field, (name, default) in _FIELDS.items():
        draft.engine.written_or(name, values.get(field), default, f"{UTILS}: default of {field}")
    if "enforce_eager" not in values:
        note = "default of SkyRL's ppo_base_config.yaml (2025)" if older else "default in SkyRL's config.py (a956457)"
        draft.engine.by_code("enforce_eager", older, note)
    _executor(draft, older=older)
    expert = values.get("expert_parallel_size")
    if expert is not None:
        size = arriving(expert)
        on = size > 1 if isinstance(size, int) else size
        draft.engine.by_file("enable_expert_parallel", expert, on, "1 is off")
    seed = root.get("trainer", "seed")
    draft.engine.by_code("seed", arriving(seed) if seed is not None else 42, f"{UTILS}: trainer.seed")
    draft.engine.by_code("generation_config", "vllm", f"{UTILS}:109")
    colocated = root.get("trainer", "placement", "colocate_all")
    sleeps = arriving(colocated) if colocated is not None else True
    draft.engine.by_code("enable_sleep_mode", sleeps, f"{UTILS}: placement.colocate_all")
    _chunked(draft, values.get("enable_chunked_prefill"), older=older)
    draft.engine.written_or("speculative_config", values.get("speculative_config"))
    kwargs = values.get("engine_init_kwargs")
    for key, node in entries(kwargs):
        if has_argument(key, vllm):
            draft.engine.by_file(key, node, note="engine_init_kwargs win over every other key")
        elif key in Catalogue.at(vllm).frontend or key in _FRONT:
            draft.not_seen.append(f"engine_init_kwargs.{key}: of the HTTP endpoint, no argument of the engine")
        else:
            reason = f"vLLM {vllm} has no argument {key}; SkyRL sets it on the namespace, where nothing reads it"
            draft.lose(key, node, Loss.UNKNOWN_KEY, reason)


def _refused(draft: Draft, command: "Command") -> None:
    from rlaudit.configs.syntax.flags import overrides

    for flag in overrides(command.words):
        if flag.operator.startswith("+") and flag.value is not None:
            reason = f"SkyRL stops: it takes no `+` in front of {flag.name} (config.py, from_cli_overrides)"
            draft.lose(flag.name.rpartition(".")[2], flag.value, Loss.REFUSED, reason)


def _multiprocessing(draft: Draft, node: Node | None, *, older: bool) -> None:
    name = "VLLM_ENABLE_V1_MULTIPROCESSING"
    if node is None:
        return
    if not older:
        draft.lose(
            "vllm_v1_disable_multiproc", node, Loss.NOT_PASSED, f"the field is inert: SkyRL always sets {name}=0"
        )
    elif known(node) is False:
        draft.environment.pop(name, None)


def _chunked(draft: Draft, node: Node | None, *, older: bool) -> None:
    if node is None:
        return
    if older:
        draft.engine.by_file("enable_chunked_prefill", node)
    else:
        reason = "the field is not handed on (config.py); engine_init_kwargs.enable_chunked_prefill is"
        draft.lose("enable_chunked_prefill", node, Loss.NOT_PASSED, reason)


def _sampling(draft: Draft, root: Node) -> None:
    names = {
        "max_generate_length": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "min_p": "min_p",
        "top_k": "top_k",
        "logprobs": "logprobs",
        "stop": "stop",
    }
    given = root.get("generator", "sampling_params")
    for key, name in names.items():
        draft.sampling.written_or(name, within(given, key))
    penalty = within(given, "repetition_penalty")
    if penalty is not None and known(penalty, 1.0) != 1.0:
        reason = "SkyRL's typed sampling parameters do not forward it; additional_kwargs do"
        draft.lose("repetition_penalty", penalty, Loss.NOT_PASSED, reason)
    extra = within(given, "additional_kwargs")
    for name, node in entries(extra):
        draft.sampling.by_file(name, node)
    note = "default of SkyRL's SamplingParams (train/config/config.py)"
    defaults: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "min_p": 0.0, "top_k": -1, "logprobs": 1}
    for name, value in defaults.items():
        if given is None or given.get(name) is None:
            draft.sampling.unless_set(name, value, note)


DIALECT = Dialect("skyrl", "SkyRL", 10, recognise, read)
