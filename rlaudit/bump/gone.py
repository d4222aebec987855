"""The names that a release does not take any more, and where their words stand in a repository."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from rlaudit.bump.tree import Tree
from rlaudit.configs.source import LARGEST_BYTES, SHELL
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.moved import moved

if TYPE_CHECKING:
    from rlaudit.report.parts.bump import GoneName
    from rlaudit.report.parts.inspection import Location

_READ = SHELL | {".py", ".yaml", ".yml", ".toml", ".json"}
_KIND = "removed "


def gone_names(before: Version, after: Version, machine: Machine, tree: Tree) -> "list[GoneName]":
    """Those with a word in the tree first."""
    gone = [one for one in moved(before, after, machine) if one.kind.startswith(_KIND)]
    found = _found([one.name for one in gone], tree) if gone else {}
    rows: list[GoneName] = [
        {
            "kind": one.kind.removeprefix(_KIND),
            "name": one.name,
            "effect": one.note,
            "instead": one.why,
            "found": found.get(one.name, []),
        }
        for one in gone
    ]
    return sorted(rows, key=lambda row: not row["found"])


def _spelt(name: str) -> re.Pattern[str]:
    """With either sign between its words. One plain word, such as `task`, means too much: as a flag alone it counts."""
    words = re.sub("[_-]", "[_-]", name)
    return re.compile(rf"(?<![\w.-])(?:--){'?' if words != name else ''}{words}(?![\w-])")


def _found(names: Sequence[str], tree: Tree) -> "dict[str, list[Location]]":
    found: dict[str, list[Location]] = {}
    for path, text in _texts(tree):
        if "vllm" not in text.lower():
            continue
        plain = text.replace("-", "_")
        for name in names:
            # Looking for every pattern in every file would take many times as long.
            for match in _spelt(name).finditer(text) if name.replace("-", "_") in plain else ():
                line = text.count("\n", 0, match.start()) + 1
                column = match.start() - text.rfind("\n", 0, match.start())
                found.setdefault(name, []).append({"path": path, "line": line, "column": column, "setting": None})
    return found


def _texts(tree: Tree) -> Iterator[tuple[str, str]]:
    paths = [path for path in tree.paths() if Path(path).suffix.lower() in _READ]
    for path, data in tree.read(paths, LARGEST_BYTES).items():
        yield path, data.decode("utf-8", errors="replace")
