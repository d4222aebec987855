"""One tree of nodes over another, as OmegaConf merges configs: mappings merge, everything else is replaced.

What `???` leaves open keeps the value below it.

Every node keeps the place it was written at, so a merged config still names the right file and line.
"""

import re

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node

REPLACES = "_override_"
# A value that another file or the command line must give.
MANDATORY = "???"
_QUOTES = re.compile(r"""(?s)(['"])(.*)\1""")


def mapping_of(source: Source) -> Node | None:
    """Return the first document of a YAML or JSON file if it is a mapping; None for anything else, never an error."""
    try:
        root = source.yaml[0] if source.yaml else None
    except ValueError:
        return None
    return root if root is not None and isinstance(root.value, dict) else None


def merged(base: Node, over: Node) -> Node:
    """Return `over` on top of `base`. A mapping of `over` with `_override_: true`, as in NeMo-RL, replaces."""
    if isinstance(over.value, str) and over.value == MANDATORY:
        return base
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over
    marker = over.value.get(REPLACES)
    if marker is not None and marker.value is True:
        return Node({key: node for key, node in over.items() if key != REPLACES}, over.place, over.key)
    union = dict(base.items())
    for key, node in over.items():
        union[key] = merged(union[key], node) if key in union else node
    return Node(union, over.place, over.key or base.key)


def nested(path: tuple[str, ...], leaf: Node) -> Node:
    """Return a tree that holds one node at a path of keys."""
    for key in reversed(path):
        leaf = Node({key: leaf}, leaf.place, leaf.key)
    return leaf


def without(root: Node, *path: str) -> Node:
    """Return the tree without the node at a path."""
    if not isinstance(root.value, dict) or path[0] not in root.value:
        return root
    others = {key: node for key, node in root.items() if len(path) > 1 or key != path[0]}
    if len(path) > 1:
        others[path[0]] = without(others[path[0]], *path[1:])
    return Node(others, root.place, root.key)


def reread(root: Node) -> Node:
    """Resolve `${...}` once more, in the whole tree: a part that was read alone could not see the others.

    Merging also changes what an interpolation means: a base config's `${actor.n}` follows the value that the config
    on top of it gives.
    """
    from rlaudit.configs.syntax.interpolation import interpolate

    return interpolate(_as_written(root))


def _as_written(node: Node) -> Node:
    if not node.refers:
        return node
    if isinstance(node.value, dict):
        return Node({key: _as_written(child) for key, child in node.items()}, node.place, node.key, node.text)
    if isinstance(node.value, tuple):
        return Node(tuple(_as_written(child) for child in node.elements()), node.place, node.key, node.text)
    if "${" in node.text:
        quoted = _QUOTES.fullmatch(node.text)
        return Node(quoted[2] if quoted else node.text, node.place, node.key, node.text)
    return node
