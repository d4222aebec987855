"""A project's own YAML or TOML with a mapping whose keys are vLLM's engine arguments, which its program hands on:
`AsyncEngineArgs(**role["config"])`.

The framework is unknown: what is written is a setting, and the program may add any other argument, or not hand on some
keys. Every such mapping counts as an engine, also a judge's or a reference's, and is named by its path. The nearest
mapping of SamplingParams' names is its sampling; of several engines only the one whose name says that it rolls out has
one that they share. Files that another dialect reads are left to it, and those of
`configs/not_read.py` are not read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.draft import Draft, leaves
from rlaudit.configs.elsewhere import Elsewhere, leave_open
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.not_read import not_read
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.configs.syntax.spelling import Write
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.unknown import Unknown
from rlaudit.vllm.lifetimes import lifetime, names

NAME = "vllm-mapping"
_SUFFIXES = {".yaml", ".yml", ".toml"}
# Names that trainers, data loaders and other engines use as well: these alone do not indicate vLLM.
_COMMON = {
    "model", "tokenizer", "dtype", "seed", "revision", "load_format", "quantization", "device", "download_dir", "task",
    "log_level", "trust_remote_code", "config_format", "runner", "watermark", "convert", "master_addr", "master_port",
    "nnodes", "node_rank", "optimization_level", "logging_config", "tokenizer_revision", "rope_scaling", "rope_theta",
}  # fmt: skip
# A mapping with so many names that only vLLM has is vLLM's: other engines' configs often borrow two.
_FEWEST = 3
# Keys of manifests, workflows, charts' values and schemas, which other dialects read or which have no settings.
_NO_CONFIG = {"services", "apiVersion", "servingEngineSpec", "jobs", "openapi", "$schema", "nav", "variants"}
# Sections of frameworks, which their own dialects read.
_OF_FRAMEWORKS = {
    "actor_rollout_ref", "vllm_cfg", "strategy_args", "engine_init_kwargs", "gconfig", "llm_configs", "vllmConfig",
    "vllm_serve_kwargs", "rollout_backend", "tensor_model_parallel_size", "free_cache_engine",
}  # fmt: skip
# Recipes and reports of this tool.
_OURS = "rlaudit-"
_ENGINE_KEYS = {"kind", "backend", "engine", "type", "name", "engine_type", "inference_backend", "provider"}
_OTHER_ENGINES = re.compile(r"(?i)(sglang|sgl|lmdeploy|trt|tensorrt|tgi|hf|huggingface|transformers|llama|deepspeed)")
_SAMPLING_KEY = re.compile(r"(?i)sampl|^generat|decod")
_EVALUATION = re.compile(r"(?i)(^|_)(eval|val|test|bench)")
_NOT_THE_POLICY = re.compile(r"(?i)(^|[^a-z])(ref|reference|judge|reward|rm|verifier|teacher|critic)([^a-z]|$)")
_THE_POLICY = re.compile(r"(?i)(^|[^a-z])(rollout|policy|actor|generat(or|ion)|sampler|student)s?([^a-z]|$)")
_OBJECTIVE = ("loss", "loss_fn", "algorithm", "objective", "grpo", "ppo")
_FEWEST_SAMPLED = 2
_MOST_NODES = 20_000
_MOST_ENGINES = 20


@dataclass(frozen=True, eq=False)
class _Engine:
    """A mapping of engine arguments."""

    node: Node
    path: str
    # The mappings around it, the nearest first.
    around: tuple[Node, ...]

    @property
    def called(self) -> str:
        """Its path, with the `name` of a list's element."""
        names = (_text_of(mapping.get("name")) for mapping in self.around[:2])
        name = next((name for name in names if name and name != self.path), "")
        return f"{self.path} ({name})" if name and self.path else self.path or name


def recognise(source: Source) -> bool:
    """Return whether the text says vllm and has names that only vLLM's engine has, at least three in one mapping."""
    if source.suffix not in _SUFFIXES or "vllm" not in source.text.lower():
        return False
    text = source.text.replace("-", "_")
    if sum(name in text for name in _specific()) < _FEWEST:
        return False
    return not_read(source, of_its_ending=True) is None and bool(_engines(source)[0])


@lru_cache(maxsize=1)
def _specific() -> frozenset[str]:
    """Return the names of engine arguments, of any release, that no other program uses."""
    return frozenset(names("engine")) - _COMMON


def _engines(source: Source) -> tuple[tuple[_Engine, ...], bool]:
    """Return the mappings of engine arguments, and whether the whole file was searched for them."""
    try:
        root = source.root
    except (ValueError, RecursionError):
        return (), True
    if root is None or not isinstance(root.value, dict) or any(root.get(key) is not None for key in _NO_CONFIG):
        return (), True
    if _text_of(root.get("schema")).startswith(_OURS):
        return (), True
    engines, names_vllm = list[_Engine](), False
    todo: list[tuple[Node, str, tuple[Node, ...]]] = [(root, "", ())]
    for _ in range(_MOST_NODES):
        if not todo:
            break
        node, path, around = todo.pop()
        if isinstance(node.value, dict):
            keys = node.value.keys()
            if keys & _OF_FRAMEWORKS:
                return (), True
            names_vllm = names_vllm or any("vllm" in key.lower() for key in keys)
            if len(_specific_keys(node)) >= _FEWEST and not _is_another(node, around):
                engines.append(_Engine(node, path, around))
            around = (node, *around)
            children = [(f"{path}.{key}" if path else key, child) for key, child in node.items()]
        else:
            children = [(f"{path}[{at}]", child) for at, child in enumerate(node.elements())]
        names_vllm = names_vllm or any(_text_of(child).lower().startswith("vllm") for _, child in children)
        containers = [
            (child, child_path, around) for child_path, child in children if isinstance(child.value, dict | tuple)
        ]
        todo += reversed(containers)
    return (tuple(engines) if names_vllm else ()), not todo


def _specific_keys(node: Node) -> list[str]:
    """Return the keys that only vLLM has and whose value is a number, a boolean or a reference: with other values, a
    schema, a table of flags or a text for people may just describe them.
    """
    return [key for key, child in entries(node) if _name(key) in _specific() and _is_value(child)]


def _is_value(node: Node) -> bool:
    return isinstance(node.value, bool | int | float | Unknown) or "${" in node.text


def _is_another(node: Node, around: tuple[Node, ...]) -> bool:
    """Return whether the mapping, or the one around it, names another engine than vLLM."""
    names = [_text_of(mapping.get(key)) for mapping in (node, *around[:1]) for key in _ENGINE_KEYS]
    return any(_OTHER_ENGINES.match(name) for name in names) and not any("vllm" in name.lower() for name in names)


def _text_of(node: Node | None) -> str:
    return node.value if node is not None and isinstance(node.value, str) else ""


def _name(key: str) -> str:
    return key.replace("-", "_")


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Return every mapping of engine arguments, in the order of the file."""
    engines, whole = _engines(source)
    rollout = _rollout(engines)
    configs = tuple(
        _config(source, engine, vllm, several=len(engines) > 1, rolls_out=engine is rollout)
        for engine in engines[:_MOST_ENGINES]
    )
    if configs and (not whole or len(engines) > _MOST_ENGINES):
        limit = (
            f"{source.path}: engines beyond the first {_MOST_ENGINES}, or beyond {_MOST_NODES:,} values, are not read"
        )
        configs = (*configs[:-1], replace(configs[-1], not_seen=(*configs[-1].not_seen, limit)))
    return configs


def _rollout(engines: Sequence[_Engine]) -> _Engine | None:
    """Return the engine that rolls out: the only one, the only one whose name says so, or that no name rules out."""
    by_name = [engine for engine in engines if _THE_POLICY.search(engine.called)]
    possible = by_name or [engine for engine in engines if not _NOT_THE_POLICY.search(engine.called)]
    return possible[0] if len(possible) == 1 else None


def _config(source: Source, engine: _Engine, vllm: Version, *, several: bool, rolls_out: bool) -> RolloutConfig:
    draft = Draft(NAME, source.path)
    arguments = {key for key, _ in entries(engine.node) if _is_argument(_name(key), vllm)}
    # Among many other keys, `seed` and `dtype` are the program's.
    is_dedicated = len(arguments) * 2 > len(dict(entries(engine.node)))
    prefix = f"{engine.path}." if engine.path else ""
    for key, node in entries(engine.node):
        name = _name(key)
        if key in arguments and (is_dedicated or name in _specific()):
            if name != "model":
                draft.engine.by_file(name, node)
        elif is_dedicated and lifetime("sampling", key) is None:
            _list(draft, f"{prefix}{key}", node)
    who = engine.called or "these arguments"
    why_unknown = _sampling(draft, engine, rolls_out=rolls_out)
    if engine.around:
        draft.list_options(engine.around[-1], *_OBJECTIVE)
    draft.not_seen.append(f"this file does not show how the program uses {who}, nor which engine arguments it adds")
    config = draft.done(
        model=engine.node.get("model"),
        place=engine.node.key or engine.node.place,
        write=_writer(engine.node, source),
    )
    config = replace(config, called=engine.called if several else "")
    config = replace(config, engine=Elsewhere(f"the program that reads {who} may add engine arguments", config.engine))
    return replace(config, sampling=Elsewhere(why_unknown)) if why_unknown else config


def _is_argument(name: str, vllm: Version) -> bool:
    """Return whether a key is an engine argument. A name that programs use as well is the program's if this release
    does not have it yet: `log_level`, which vLLM has since 0.31.0.
    """
    life = lifetime("engine", name)
    return life is not None and not (name in _COMMON and life[0] > vllm)


def _list(draft: Draft, path: str, node: Node) -> None:
    """Add a key that vLLM does not have as an option of the program."""
    if isinstance(node.value, dict) and node.value:
        for name, leaf in leaves(node, f"{path}."):
            draft.options.by_file(name, leaf)
    else:
        draft.options.by_file(path, node)


def _sampling(draft: Draft, engine: _Engine, *, rolls_out: bool) -> str:
    """Take the nearest mapping of sampling parameters, else the parameters among the engine's own arguments.

    A mapping that several engines share is the policy's: a reference or a judge gets other requests.
    Returns why the sampling is unknown, or "".
    """
    inner = _sampled_in(engine.node)
    if inner is None and not rolls_out:
        reason = f"{engine.called} is one of several engines, and it is not known whether it samples rollouts"
        draft.not_seen.append(f"sampling parameters were not read: {reason}")
        return reason
    mapping = inner or next((sampling for level in engine.around if (sampling := _sampled_in(level)) is not None), None)
    for key, node in entries(mapping if mapping is not None else engine.node):
        if lifetime("sampling", key) is not None and lifetime("engine", key) is None:
            draft.sampling.by_file(key, node)
        elif mapping is not None:
            _list(draft, node.key.setting if node.key is not None else key, node)
    if not draft.sampling:
        draft.not_seen.append("sampling parameters were not seen: the file has none beside the engine's arguments")
    leave_open(draft.sampling, "the program may add this to the sampling parameters of this file")
    return ""


def _sampled_in(level: Node) -> Node | None:
    """Return the mapping of sampling parameters among the keys of another one, but none of an evaluation."""
    mappings = {key: node for key, node in entries(level) if _SAMPLING_KEY.search(key) and _is_sampling(node)}
    rollouts = [node for key, node in mappings.items() if not _EVALUATION.search(key)]
    return rollouts[0] if rollouts else None


def _is_sampling(node: Node) -> bool:
    keys = [key for key, _ in entries(node) if lifetime("sampling", key) is not None]
    return len(keys) >= _FEWEST_SAMPLED and not any(isinstance(node.value[key].value, dict) for key in keys)


def _writer(mapping: Node, source: Source) -> Write:
    """Return a function that writes existing keys: whether the program hands a new one on is unknown."""
    keys = {_name(key): key for key, _ in entries(mapping)}

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        spelling = plain_spelling(name, value)
        return (keys[name], spelling[1]) if name in keys and spelling is not None else None

    if source.suffix != ".toml":
        return one_mapping(mapping, spell, source.text)
    from rlaudit.configs.syntax.toml_edits import toml_writer

    return toml_writer(mapping, spell, source.text)


DIALECT = Dialect(NAME, "a project's own config of vLLM's engine arguments", -1, recognise, read)
