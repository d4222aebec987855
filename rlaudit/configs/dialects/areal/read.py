"""AReaL: YAML with a `vllm:` section next to `gconfig`, `actor` and `rollout`.

The section is a dataclass without passthrough, so `logprobs_mode` and `generation_config` cannot be said: vLLM's own
defaults hold. get_py_cmd skips every false value; the authors' way out are fields such as
`no_enable_prefix_caching: true` (cli_args.py). A config whose `rollout.backend` is SGLang starts no vLLM.
"""

import re
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.areal.trainer import trainer_facts
from rlaudit.configs.draft import Draft, known
from rlaudit.configs.engine_names import affirmed
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.mapping_writer import one_mapping
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.omitted_flag import dropped
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries, within

_FIELDS_OF = "areal/api/cli_args.py"
FILES = FrameworkFiles("areal", engine=(f"{_FIELDS_OF}#vLLMConfig",), omits_false=True)
CLI_ARGS = "AReaL cli_args.py (cbff54d)"
_DEFAULTS: dict[str, Any] = {
    "dtype": "bfloat16",
    "seed": 1,
    "distributed_executor_backend": "mp",
    "max_num_seqs": 256,
    "block_size": 16,
    "disable_sliding_window": True,
    "max_model_len": 32768,
    "gpu_memory_utilization": 0.9,
    "enable_prefix_caching": False,
}
_FIELDS = {
    "model", "seed", "skip_tokenizer_init", "enforce_eager", "dtype", "distributed_executor_backend", "max_num_seqs",
    "block_size", "cpu_offload_gb", "disable_sliding_window", "max_model_len", "no_enable_chunked_prefill",
    "no_enable_prefix_caching", "gpu_memory_utilization", "worker_extension_cls", "enable_sleep_mode",
    "uvicorn_log_level", "gdn_prefill_backend", "enable_lora", "max_lora_rank", "max_loras", "lora_modules",
}  # fmt: skip
_OLDER_FIELDS = {"enable_prefix_caching", "enable_chunked_prefill", "swap_space", "num_scheduler_steps"}
_NOT_ENGINE = {"model", "uvicorn_log_level"}
_BACKEND = re.compile(r"\bvllm(?:\[[^\]]*\])?[:.](\w+)")
_SIZE = re.compile(r"([a-z])(\d+)")


def recognise(source: Source) -> bool:
    """Whether generation is configured by `gconfig` and a `vllm:` section or backend stands beside an `actor`."""
    if "gconfig" not in source.text or "vllm" not in source.text:
        return False
    root = mapping_of(source)
    if root is None or root.get("gconfig") is None:
        return False
    return root.get("actor") is not None and (root.get("vllm") is not None or bool(_sizes(root)))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """The rollout servers, where the backend is vLLM."""
    config = composed(source)
    own = mapping_of(source)
    if config is None or own is None:
        return ()
    root = config.root
    backend = known(root.get("rollout", "backend")) or known(root.get("allocation_mode"))
    if isinstance(backend, str) and not _BACKEND.search(backend):
        return ()
    draft = Draft("areal", source.path, parts=config.parts)
    section = root.get("vllm")
    _engine(draft, section, vllm)
    _sizes_of_engine(draft, root)
    _environment(draft, root)
    draft.list_options(
        root, "actor.rejection_sampling", "actor.use_decoupled_loss", "actor.behave_imp_weight_cap",
        "actor.recompute_logprob", "actor.eps_clip", "actor.eps_clip_higher", "actor.kl_ctl", "actor.ppo_n_minibatches",
        "gconfig.n_samples", "rollout.max_head_offpolicyness",
    )  # fmt: skip
    _sampling(draft, root)
    trainer_facts(draft, root, vllm)
    checkout = FILES.checkout(source)
    hold_against(draft, FILES, checkout, vllm)
    for name, value in {"load_format": "auto", "trust_remote_code": True}.items():
        draft.engine.by_code(name, value, f"{CLI_ARGS}: build_args")
        draft.decided.pop(name, None)
    if backend is None:
        draft.not_seen.append("the rollout backend: neither rollout.backend nor allocation_mode is in this file")
    for missing in config.missing:
        draft.not_seen.append(f"{missing}, which `defaults:` inherits, is not beside this file")
    home = own.get("vllm") or own
    model = within(section, "model")
    return (
        draft.done(
            model=model or root.get("actor", "path"),
            place=home.key or home.place,
            write=one_mapping(own.get("vllm"), lambda name, value: _spell(checkout, name, value), source.text),
        ),
    )


def _spell(checkout: Checkout | None, name: str, value: Any) -> tuple[str, str] | None:
    """Only fields of the dataclass can be written, and False only where there is a `no_enable_` field."""
    if f"no_{name}" in _FIELDS and isinstance(value, bool):
        spelt = (f"no_{name}", "false" if value else "true")
        fields = checkout.file(_FIELDS_OF) if checkout is not None else None
        return spelt if fields is None or spelt[0] in fields.text else None
    if name not in _FIELDS or value is False or not isinstance(value, bool | int | float | str):
        return None
    return name, "true" if value is True else str(value)


def _engine(draft: Draft, section: Node | None, vllm: Version) -> None:
    for name, value in _DEFAULTS.items():
        draft.engine.by_code(name, value, f"{CLI_ARGS}: default of vLLMConfig")
    for key, node in entries(section):
        name, negated = affirmed(key)
        if key in _NOT_ENGINE:
            continue
        if node.value is None or node.value == "":
            draft.engine.by_file(name, node, value=None, note="get_py_cmd skips it")
            continue
        if key not in _FIELDS and key not in _OLDER_FIELDS:
            draft.lose(key, node, Loss.REFUSED, f"{CLI_ARGS}: vLLMConfig has no such field and refuses it")
        elif negated:
            _negated(draft, name, node)
        elif node.value is False:
            reason = f"{CLI_ARGS}: get_py_cmd skips false values; no_{name}: true says it where the field exists"
            draft.engine[name] = dropped(draft, name, node, vllm, reason)
        else:
            draft.engine.by_file(name, node)


def _negated(draft: Draft, name: str, node: Node) -> None:
    if node.value is True:
        draft.engine.by_file(name, node, value=False, note=f"passed as --no-{name.replace('_', '-')}")
    elif node.value is False:
        draft.engine.by_file(name, node, value=None, note="no flag is passed, so vLLM decides")
    else:
        draft.engine.by_file(name, node)


def _sizes(root: Node) -> dict[str, int]:
    """Data, tensor and pipeline parallel sizes of the rollout: `vllm:d4p1t2`."""
    for node in (root.get("rollout", "backend"), root.get("allocation_mode")):
        text = known(node)
        found = _BACKEND.search(text) if isinstance(text, str) else None
        if found is not None:
            return {letter: int(size) for letter, size in _SIZE.findall(found[1])}
    return {}


def _sizes_of_engine(draft: Draft, root: Node) -> None:
    node = root.get("rollout", "backend") or root.get("allocation_mode")
    sizes = _sizes(root)
    if node is None or not sizes:
        return
    for letter, name in (("t", "tensor_parallel_size"), ("p", "pipeline_parallel_size")):
        draft.engine.by_file(name, node, sizes.get(letter, 1), f"`{letter}` of the backend, 1 where not given")
    draft.trains("replicas", sizes.get("d", 1), "`d` of the rollout's backend", node)


def _environment(draft: Draft, root: Node) -> None:
    spec = root.get("rollout", "scheduling_spec") or root.get("actor", "scheduling_spec")
    for one in spec.elements() if spec is not None else ():
        variables = one.get("env_vars")
        for name, node in entries(variables):
            if name.startswith(("VLLM_", "NCCL_")):
                draft.environment.by_file(name, node)


def _sampling(draft: Draft, root: Node) -> None:
    names = {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "max_new_tokens": "max_tokens",
        "frequency_penalty": "frequency_penalty",
        "stop": "stop",
    }
    gconfig = root.get("gconfig")
    for key, name in names.items():
        draft.sampling.written_or(name, within(gconfig, key))
    greedy = within(gconfig, "greedy")
    if greedy is not None and greedy.value is True:
        draft.sampling.by_file("temperature", greedy, 0.0, "gconfig.greedy")
    note = f"{CLI_ARGS}: default of GenerationHyperparameters"
    defaults: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
    for name, value in defaults.items():
        draft.sampling.unless_set(name, value, note)
    draft.sampling.by_code("logprobs", 0, "AReaL asks for the logprob of the sampled token")


DIALECT = Dialect("areal", "AReaL", 10, recognise, read)
