"""The tree of keys that a config is turned into, however it is written, before a dialect reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlaudit.configs.syntax.node import Node
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call
    from rlaudit.configs.syntax.shell_command import Command


@dataclass(frozen=True, eq=False)
class Tree:
    """One config.

    A key of a command line may hold dots (`--vllm.num_engines`), and is then one key of the root.
    """

    # The keys, with everything that the config inherits.
    root: Node
    # The keys that this file itself writes, to which edits are made.
    own: Node
    command: "Command | None" = None
    # Index of the first word of the command that is an option.
    options_at: int = 0
    # The dialect's word for the program or the class that the config is for; empty if it has none.
    call: str = ""
    # The call of a Python program, if that writes the config.
    python_call: "Call | None" = None
    # Why it may have further keys that could not be read (`**more`); empty if it is complete.
    open: str = ""
    # Other files that were read with it.
    parts: tuple[str, ...] = ()
    # Inherited files that are not beside this one.
    missing: tuple[str, ...] = ()
    # How its keys are arranged, once the dialect has looked.
    layout: "Layout | None" = None

    @property
    def unread(self) -> Unknown | None:
        """The value of a key that is not written: None, or Unknown if some keys could not be read."""
        return Unknown(f"it may be among further arguments: {self.open}") if self.open else None


@dataclass(frozen=True)
class Layout:
    """One arrangement of a framework's keys."""

    name: str
    # Dotted; empty for the file's own root.
    root: str = ""
    # Keys below the root, of which one must be written; any config fits without.
    has: tuple[str, ...] = ()
    # Name of a key in the dialect -> its name in this layout.
    renames: Mapping[str, str] = field(default_factory=dict)

    def written(self, root: Node) -> Node | None:
        """Return the node at the layout's root, which may lack keys that the file inherits."""
        return root.get(*self.root.split(".")) if self.root else root

    def section(self, root: Node) -> Node | None:
        """Return the layout's root in a tree; None if the tree is not arranged so."""
        at = self.written(root)
        if at is None or not isinstance(at.value, dict):
            return None
        return at if not self.has or any(node_at(at, key) is not None for key in self.has) else None


def node_at(root: Node, path: str) -> Node | None:
    """Return the node at a dotted path, or under a key that is spelt with the dots."""
    if isinstance(root.value, dict) and path in root.value:
        return root.get(path)
    return root.get(*path.split("."))
