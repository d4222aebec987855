"""NeMo-RL's `defaults:`: a path, or several, relative to the file, with the file itself merged on top.

Source: nemo_rl/utils/config.py, load_config_with_inheritance (7ea279a).
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from rlaudit.configs.hydra_defaults import Composed
from rlaudit.configs.hydra_dotlist import Overridden
from rlaudit.configs.merging import mapping_of, merged, reread
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node

DEEPEST = 12


@dataclass
class _Family:
    """The ancestors of a file that were read."""

    parts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    # Each file that was searched, opened once.
    beside: dict[str, Source | None] = field(default_factory=dict)
    # Each parent on top of its own, which many files may name.
    loaded: dict[str, Node | None] = field(default_factory=dict)

    def parent(self, source: Source, name: str) -> Source | None:
        """Return a file named by `defaults:`; None if it is missing."""
        path = str(Path(source.path).parent / name)
        if path not in self.beside:
            self.beside[path] = source.neighbour(name) if name.endswith((".yaml", ".yml")) else None
        return self.beside[path]


# Called when the file is recognised, and again for each version.
@lru_cache(maxsize=4)
def inherited(source: Source) -> Composed | None:
    """Return the first document on top of its chain of parents; None if the file is no mapping."""
    family = _Family()
    tree = _load(source, family, (source.path,))
    if tree is None:
        return None
    if family.parts:
        tree = reread(tree)
    return Composed(tree, tuple(dict.fromkeys(family.parts)), tuple(dict.fromkeys(family.missing)))


def overriding(source: Source, overridden: Overridden) -> Composed | None:
    """Return the overrides of a command on top of the file of its `--config` or `config=`; None if it names none."""
    from rlaudit.configs.syntax.flags import flags

    paths = [flag.value for flag in flags(overridden.command.words) if flag.name == "config" and flag.value is not None]
    named = paths[-1] if paths else overridden.root.get("config")
    name = named.value if named is not None else None
    if not isinstance(name, str):
        return None
    beside = source.named_file(named) or source.above(name)
    base = inherited(beside) if beside is not None else None
    if beside is None or base is None:
        return Composed(overridden.root, missing=(name,))
    return replace(base, root=reread(merged(base.root, overridden.root)), parts=(beside.path, *base.parts))


def _load(source: Source, family: _Family, seen: tuple[str, ...]) -> Node | None:
    root = mapping_of(source)
    if root is None:
        return None
    listed = root.get("defaults")
    parents = () if listed is None else listed.elements() or (listed,)
    # A parent that is named twice has its last place: what it sets, it sets again there.
    names = [*dict.fromkeys(parent.value for parent in reversed(parents) if isinstance(parent.value, str))]
    tree: Node | None = None
    for name in reversed(names):
        file = family.parent(source, name)
        if file is None or file.path in seen or len(seen) > DEEPEST:
            family.missing.append(name)
            continue
        if file.path not in family.loaded:
            family.loaded[file.path] = _load(file, family, (*seen, file.path))
        part = family.loaded[file.path]
        if part is None:
            family.missing.append(name)
            continue
        family.parts.append(file.path)
        tree = part if tree is None else merged(tree, part)
    return root if tree is None else merged(tree, root)
