"""The routes that the server of the new release has and the old one's had not, where a repository writes them, too.

A server of its own over vLLM's then has two of that name, and the first one answers.
"""

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from rlaudit.bump.places_of import places_of
from rlaudit.bump.tree import Tree
from rlaudit.vllm.lifetimes import lifetime, names

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import NewRoute


def new_routes(before: Version, after: Version, tree: Tree) -> "list[NewRoute]":
    """Those that stand as a text, or at the end of one, in the tree."""
    new = {}
    for name in names("route"):
        span = lifetime("route", name)
        if span is not None and before < span[0] <= after:
            new[name] = str(span[0])
    found = places_of({name: re.compile(rf"(?<=[\"'}}]){re.escape(name)}(?=[\"'?])") for name in new}, tree)
    return [{"path": name, "since": new[name], "found": places} for name, places in found.items()]
