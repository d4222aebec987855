"""rLLM on verl: `rllm.*` keys, mirrored into verl's config when training starts, beside verl's own.

Precedence per shared key (trainer/verl/utils.py, sync_config, 9beb6e0): `rllm.*` given on the command line, then verl's
key given there, then `rllm.*` of the YAML, then verl's. Everything else is verl's.
"""

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.verl.read import Read, rollout_config
from rlaudit.configs.draft import is_said
from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.hydra_dotlist import Overridden, overridden
from rlaudit.configs.hydra_program import started_from
from rlaudit.configs.merging import mapping_of, merged, nested, reread
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node

# rllm's key -> verl's key
_MIRRORED = {
    "rllm.algorithm.rollout_correction.bypass_mode": "algorithm.rollout_correction.bypass_mode",
    "rllm.algorithm.rollout_correction.tis_mode": "algorithm.rollout_correction.rollout_is",
    "rllm.algorithm.rollout_correction.tis_cap": "algorithm.rollout_correction.rollout_is_threshold",
    "rllm.rollout.n": "actor_rollout_ref.rollout.n",
    "rllm.rollout.train.temperature": "actor_rollout_ref.rollout.temperature",
    "rllm.rollout.train.top_p": "actor_rollout_ref.rollout.top_p",
    "rllm.rollout.train.top_k": "actor_rollout_ref.rollout.top_k",
    "rllm.rollout.train.max_tokens": "actor_rollout_ref.rollout.response_length",
}


def recognise(source: Source) -> bool:
    """Whether `rllm.*` is set together with verl's rollout."""
    if "rllm" not in source.text or "actor_rollout_ref" not in source.text:
        return False
    root = mapping_of(source)
    if root is not None and root.get("rllm") is not None:
        return root.get("actor_rollout_ref", "rollout") is not None
    return any(one.root.get("rllm") is not None or _starts_rllm(one.command.words) for one in _commands(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """verl's reading of the mirrored config."""
    found = (rollout_config("rllm", one, source, vllm) for one in _reads(source))
    return tuple(config for config in found if config is not None)


def _reads(source: Source) -> tuple[Read, ...]:
    own = mapping_of(source)
    if own is not None and own.get("rllm") is not None:
        config = composed(source)
        if config is None:
            return ()
        return (Read(_mirrored(config.root), own, True, None, config.parts, config.missing),)
    return tuple(_of_command(source, one) for one in _commands(source))


def _of_command(source: Source, one: Overridden) -> Read:
    """The program's own config below what the command gives, each mirrored by itself: verl's key of a command line
    wins over rllm's of the YAML.
    """
    given, base = _mirrored(one.root), started_from(source, one)
    if base is None or base.root.get("actor_rollout_ref", "rollout") is None:
        return Read(given, one.root, True, one.command, (), ("the config that the command starts from",))
    whole = reread(merged(_mirrored(base.root), given))
    return Read(whole, one.root, bool(base.missing), one.command, base.parts, base.missing)


def _commands(source: Source) -> tuple[Overridden, ...]:
    return overridden(source, "actor_rollout_ref.rollout.")


def _starts_rllm(words: tuple[Node, ...]) -> bool:
    return any(isinstance(word.value, str) and word.value.startswith("rllm.") for word in words)


def _mirrored(root: Node) -> Node:
    """The tree with rllm's keys at verl's places; a null says nothing."""
    for theirs, native in _MIRRORED.items():
        node = root.get(*theirs.split("."))
        if is_said(node):
            root = merged(root, nested(tuple(native.split(".")), node))
    asynchronous = root.get("rllm", "async_training", "enable")
    if asynchronous is not None and asynchronous.value is True:
        partial = root.get("rllm", "async_training", "partial_rollout")
        leaf = nested(("async_training", "partial_rollout"), partial) if partial is not None else None
        if leaf is not None:
            root = merged(root, leaf)
    elif root.get("async_training") is not None:
        root = Node({key: node for key, node in root.items() if key != "async_training"}, root.place, root.key)
    return root


DIALECT = Dialect("rllm", "rLLM", 20, recognise, read)
