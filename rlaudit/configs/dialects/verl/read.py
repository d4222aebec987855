"""verl: `actor_rollout_ref.rollout` in Hydra YAML, or as overrides on the command line of a script.

No config names its release of verl, and releases differ in what reaches the engine: v0.6.0 to v0.9.0 skip a written
`false`. `release.py` says which keys tell the release; where none does, the value is unknown.
"""

from typing import Any

from packaging.version import Version

from rlaudit.configs.dialect import Framework
from rlaudit.configs.dialects.verl.reading import Read, rollout_config
from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.hydra_dotlist import overridden
from rlaudit.configs.merging import mapping_of, nested
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node

ROLLOUT = "actor_rollout_ref"
_GROUP = "verl.workers.config.RolloutConfig"


def recognise(source: Source) -> bool:
    """Whether `actor_rollout_ref.rollout` is set, or the file is verl's own rollout group."""
    text = source.text
    if ROLLOUT not in text and _GROUP not in text:
        return False
    root = mapping_of(source)
    if root is not None and _rollout(root) is not None:
        return True
    return f"{ROLLOUT}.rollout." in text and bool(overridden(source, f"{ROLLOUT}.rollout."))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One engine per config; a script may start several."""
    found = (rollout_config("verl", one, source, vllm) for one in reads(source))
    return tuple(config for config in found if config is not None)


def reads(source: Source) -> tuple[Read, ...]:
    """Every config of the file as a tree rooted where verl's is."""
    own = mapping_of(source)
    if own is not None and _rollout(own) is not None:
        config = composed(source)
        if config is None:
            return ()
        root, mine = _rooted(config.root), _rooted(own)
        listed = own.get("defaults") is not None
        inherits = bool(config.missing) or not (listed or _is_whole(root))
        return (Read(root, mine, inherits, None, config.parts, config.missing),)
    return tuple(
        Read(one.root, one.root, True, one.command, (), ("the config that the command starts from",))
        for one in overridden(source, f"{ROLLOUT}.rollout.")
    )


def _rollout(root: Node) -> Node | None:
    inside = root.get(ROLLOUT, "rollout")
    if inside is not None and isinstance(inside.value, dict):
        return inside
    target: Any = root.get("_target_")
    return root if target is not None and target.value == _GROUP else None


def _rooted(root: Node) -> Node:
    return root if root.get(ROLLOUT) is not None else nested((ROLLOUT, "rollout"), root)


def _is_whole(root: Node) -> bool:
    rollout = root.get(ROLLOUT, "rollout")
    keys = ("gpu_memory_utilization", "enforce_eager", "enable_chunked_prefill", "val_kwargs")
    return rollout is not None and all(rollout.get(key) is not None for key in keys)


FRAMEWORK = Framework("verl", "verl", 10, recognise, read)
