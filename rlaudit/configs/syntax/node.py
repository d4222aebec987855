"""A value and its place in the file, in any syntax: YAML, TOML, JSON, shell words or Python literals."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

# The key under which a mapping of Python keeps further content: `{**more}`, `kwargs[name] = value`.
REST = "**"


@dataclass(frozen=True, eq=False)
class Node:
    """A scalar, a list or a mapping with its place."""

    # bool, int, float, str, None or Unknown; tuple[Node, ...]; or dict[str, Node].
    value: Any
    place: Place
    # Of the key that leads here, None at the root and in lists.
    key: Place | None = None
    # The scalar exactly as written, quotes included.
    text: str = ""

    @cached_property
    def refers(self) -> bool:
        """Whether an interpolation (`${...}`) is in the node or anywhere below."""
        if isinstance(self.value, dict):
            return any(child.refers for child in self.value.values())
        if isinstance(self.value, tuple):
            return any(child.refers for child in self.value)
        return "${" in self.text or (isinstance(self.value, str) and "${" in self.value)

    def get(self, *path: str) -> "Node | None":
        """Return the node at a path of keys, or None."""
        node: Node | None = self
        for key in path:
            if node is None or not isinstance(node.value, dict):
                return None
            node = node.value.get(key)
        return node

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """Yield keys and nodes of a mapping; nothing for anything else."""
        if isinstance(self.value, dict):
            yield from self.value.items()

    def elements(self) -> tuple["Node", ...]:
        """Return the elements of a list; nothing for anything else."""
        return self.value if isinstance(self.value, tuple) else ()

    def plain(self) -> Any:
        """Return Python data; Unknown stays in its place."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value


def within(node: Node | None, *path: str) -> Node | None:
    """Return the node at a path of keys below one that may be missing."""
    return None if node is None else node.get(*path)


def entries(node: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield keys and nodes of a mapping that may be missing, without REST, which is no key of the file."""
    if node is not None:
        yield from ((key, child) for key, child in node.items() if key != REST)


def rest(node: Node | None) -> str:
    """Return why a mapping may hold more than is read, or is not known at all; empty if everything is read."""
    content = within(node, REST) if node is not None and isinstance(node.value, dict) else node
    if content is None or content.value is None:
        return ""
    return content.value.reason if isinstance(content.value, Unknown) else ""
