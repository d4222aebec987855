"""What is known of a config from its keys alone, before more of it is read: whether it sets up rollouts at all.

rollouts if: call == rollout or (rlhf_type in (grpo, ppo) and use_vllm)      # if it is false, the config is not read
kinds: {rloo: normalize_advantages is set, grpo: use_vllm}     # `call`, if only keys tell it: the first that holds
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rlaudit.configs.draft import arriving
from rlaudit.configs.syntax.node import Node
from rlaudit.dialects.condition import Truth, compared, condition
from rlaudit.dialects.tree import Layout, Tree, node_at
from rlaudit.unknown import Unknown


class Keys:
    """The keys of one config, for conditions to look up."""

    def __init__(self, tree: Tree, layout: Layout) -> None:
        self.tree, self.layout = tree, layout

    def node(self, path: str) -> Node | None:
        """Return the node at a path of the file, or at `@key` below the layout's root."""
        section = self.layout.section(self.tree.root) if path.startswith("@") else self.tree.root
        key = path.removeprefix("@").removeprefix("/")
        return None if section is None else node_at(section, self.layout.renames.get(key, key))

    def value(self, reference: str) -> Any:
        """Return what a key holds, or the word for the program."""
        if reference in {"call", "layout"}:
            return self.tree.call if reference == "call" else self.layout.name
        if reference in {"command", "program"}:
            return (self.tree.command if reference == "command" else self.tree.python_call) is not None
        node = self.node(reference)
        return unread(self.tree) if node is None else arriving(node)

    def is_written(self, reference: str) -> bool:
        """Return whether the config has a key."""
        return self.node(reference) is not None

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Return how a key's value compares to a word."""
        return compared(self.value(reference), sign, other)


def unread(tree: Tree) -> Unknown | None:
    """Return the value of a key that is not written: None, or Unknown if some keys could not be read."""
    return Unknown(f"it may be among further arguments: {tree.open}") if tree.open else None


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
