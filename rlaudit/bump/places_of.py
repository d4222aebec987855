"""Where words stand in the files of a tree that mention vLLM, whatever they mean there."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlaudit.bump.tree import Tree
from rlaudit.configs.source import LARGEST_BYTES, SHELL

if TYPE_CHECKING:
    from rlaudit.report.parts.inspection import Location

_READ = SHELL | {".py", ".yaml", ".yml", ".toml", ".json"}


def places_of(patterns: Mapping[str, re.Pattern[str]], tree: Tree) -> "dict[str, list[Location]]":
    """By name, in the order of the files. A name must stand in its match, whatever sign is between its words."""
    found: dict[str, list[Location]] = {}
    for path, text in _texts(tree) if patterns else ():
        if "vllm" not in text.lower():
            continue
        plain = text.replace("-", "_")
        for name, pattern in patterns.items():
            # Looking for every pattern in every file would take many times as long.
            for match in pattern.finditer(text) if name.replace("-", "_") in plain else ():
                line = text.count("\n", 0, match.start()) + 1
                column = match.start() - text.rfind("\n", 0, match.start())
                found.setdefault(name, []).append({"path": path, "line": line, "column": column, "setting": None})
    return found


def _texts(tree: Tree) -> Iterator[tuple[str, str]]:
    paths = [path for path in tree.paths() if Path(path).suffix.lower() in _READ]
    for path, data in tree.read(paths, LARGEST_BYTES).items():
        yield path, data.decode("utf-8", errors="replace")
