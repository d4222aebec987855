"""The names that a release does not take or have any more, and where their words stand in a repository."""

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from rlaudit.bump.places_of import places_of
from rlaudit.bump.tree import Tree
from rlaudit.vllm.gone_imports import gone_imports
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.moved import Change, moved

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import GoneName


def gone_names(before: Version, after: Version, machine: Machine, tree: Tree) -> "list[GoneName]":
    """Those with a word in the tree first."""
    gone = [one for one in moved(before, after, machine) if one.change is Change.REMOVED]
    imports = gone_imports(before, after)
    spelt = {one.name: _spelt(one.name) for one in gone} | {one.name: _imported(one.name) for one in imports}
    found = places_of(spelt, tree)
    rows: list[GoneName] = [
        {
            "kind": one.part.value,
            "name": one.name,
            "effect": one.note,
            "instead": one.why,
            "found": found.get(one.name, []),
        }
        for one in gone
    ]
    rows += [
        {
            "kind": "import",
            "name": one.name,
            "effect": f"ImportError; {one.last} was the last with it",
            "instead": f"{one.instead} takes its place." if one.instead else "",
            "found": found.get(one.name, []),
        }
        for one in imports
    ]
    return sorted(rows, key=lambda row: not row["found"])


def _imported(name: str) -> re.Pattern[str]:
    """`import vllm.worker`, `from vllm.worker.x import y`; of a class the name itself, which is no other word."""
    return re.compile(rf"(?:from|import)\s+{re.escape(name)}\b" if "." in name else rf"\b{name}\b")


def _spelt(name: str) -> re.Pattern[str]:
    """With either sign between its words. One plain word, such as `task`, means too much: as a flag alone it counts."""
    words = re.sub("[_-]", "[_-]", name)
    return re.compile(rf"(?<![\w.-])(?:--){'?' if words != name else ''}{words}(?![\w-])")
