"""What is known of a config from its keys alone, before more of it is read: whether it sets up rollouts at all.

rollouts if: call == rollout or (rlhf_type in (grpo, ppo) and use_vllm)      # if it is false, the config is not read
kinds: {rloo: normalize_advantages is set, grpo: use_vllm}     # `call`, if only keys tell it: the first that holds
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlaudit.configs.draft import arriving, is_said
from rlaudit.configs.syntax.node import Node
from rlaudit.dialects.condition import Truth, compared, condition
from rlaudit.dialects.tree import Layout, Tree, node_at


class Keys:
    """The keys of one config, for conditions to look up."""

    def __init__(self, tree: Tree, layout: Layout) -> None:
        self.tree, self.layout = tree, layout
        section = layout.section(tree.root)
        assert section is not None
        self.section: Node = section
        self._nodes: dict[str, Node | None] = {}
        self._facts: Mapping[str, Any] = {
            "layout": layout.name,
            "call": tree.call,
            "missing": bool(tree.missing),
            "missing_base": any("/" not in file or file.startswith(("..", "/")) for file in tree.missing),
            "composed": tree.is_composed,
            "command": tree.command is not None,
            "program": tree.python_call is not None,
        }

    def node(self, path: str) -> Node | None:
        """Return the node at a path: `a.b`, `@key` below the layout's root, `a | b` for the first that is written."""
        if path not in self._nodes:
            nodes = [self._node(part.strip()) for part in path.split("|")]
            present = next((node for node in nodes if node is not None), None)
            self._nodes[path] = next((node for node in nodes if is_said(node)), present)
        return self._nodes[path]

    def _node(self, path: str) -> Node | None:
        if not path.startswith("@"):
            return node_at(self.tree.root, path.removeprefix("/"))
        key = path[1:]
        return node_at(self.section, self.layout.renames.get(key, key)) if key else self.section

    def value(self, reference: str) -> Any:
        """Return what a key holds, or what a word like `layout` or `composed` says of the config."""
        if reference in self._facts:
            return self._facts[reference]
        node = self.node(reference)
        return self.tree.unread if node is None else arriving(node)

    def is_written(self, reference: str) -> bool:
        """Return whether the config has a key."""
        return self.node(reference) is not None

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Return how a key's value compares to a word."""
        return compared(self.value(reference), sign, other)


def with_kind(dialect: Mapping[str, Any], tree: Tree, layout: Layout) -> Tree:
    """Return a config with the word for its program, which its keys decide if nothing else does."""
    if tree.call or "kinds" not in dialect:
        return tree
    keys = Keys(tree, layout)
    words = (word for word, text in dialect["kinds"].items() if condition(text)(keys) is True)
    return replace(tree, call=next(words, ""))


def sets_up_rollouts(dialect: Mapping[str, Any], tree: Tree, layout: Layout) -> Truth:
    """Return whether a config has what the dialect requires of one."""
    needed = dialect.get("rollouts if")
    return True if needed is None else condition(needed)(Keys(tree, layout))
