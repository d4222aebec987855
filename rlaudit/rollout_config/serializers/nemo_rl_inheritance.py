"""NeMo-RL's `defaults:`: a path, or several, relative to the file, with the file itself merged on top.

Source: nemo_rl/utils/config.py, load_config_with_inheritance (7ea279a).
"""

from rlaudit.rollout_config.node import Node
from rlaudit.rollout_config.serializers.hydra_defaults import Composed
from rlaudit.rollout_config.serializers.merging import mapping_of, merged, reread
from rlaudit.rollout_config.source import Source

DEEPEST = 12


def inherited(source: Source) -> Composed | None:
    """The first document on top of its chain of parents; None where the file is no mapping."""
    parts: list[str] = []
    missing: list[str] = []
    tree = _load(source, parts, missing, (source.path,))
    if tree is None:
        return None
    if parts:
        tree = reread(tree)
    return Composed(tree, tuple(parts), tuple(missing))


def _load(source: Source, parts: list[str], missing: list[str], seen: tuple[str, ...]) -> Node | None:
    root = mapping_of(source)
    if root is None:
        return None
    listed = root.get("defaults")
    parents = () if listed is None else listed.elements() or (listed,)
    tree: Node | None = None
    for parent in parents:
        if not isinstance(parent.value, str):
            continue
        found = source.neighbour(parent.value) if parent.value.endswith((".yaml", ".yml")) else None
        if found is None or found.path in seen or len(seen) > DEEPEST:
            missing.append(parent.value)
            continue
        part = _load(found, parts, missing, (*seen, found.path))
        if part is None:
            missing.append(parent.value)
            continue
        parts.append(found.path)
        tree = part if tree is None else merged(tree, part)
    return root if tree is None else merged(tree, root)
