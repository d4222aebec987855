"""The files of the tree that a Python program loads: what it imports, and what that does."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from rlaudit.configs.framework_source.bindings import nodes_in
from rlaudit.configs.framework_source.checkout import Checkout, is_there
from rlaudit.configs.source import Source

_MOST_FILES = 40


def imported_by(program: Source) -> Iterator[Source]:
    """Files of the tree that the program loads, the nearest first, without the program itself."""
    waiting, seen = [_at(Path(program.path).absolute())], set[str]()
    while waiting and len(seen) < _MOST_FILES:
        file = waiting.pop(0)
        if file is None or file.path in seen:
            continue
        if seen:
            yield file
        seen.add(file.path)
        waiting += [_at(path) for path in _imports(file)]


def _imports(file: Source) -> Iterator[Path]:
    folder = Path(file.path).parent
    for node in nodes_in(file):
        if isinstance(node, ast.Import):
            modules = [(0, one.name) for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            home = node.module or ""
            modules = [(node.level, home), *((node.level, f"{home}.{one.name}".strip(".")) for one in node.names)]
        else:
            continue
        for level, module in modules:
            yield from _files(folder, level, module)


def _files(folder: Path, level: int, module: str) -> Iterator[Path]:
    """Where a module may lie: beside the file, in a folder above it, or in that one's `src`, up to the repository."""
    roots = [folder.parents[level - 2] if level > 1 else folder] if level else list(_roots(folder))
    for root in roots:
        path = root.joinpath(*module.split(".")) if module else root
        for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if is_there(candidate):
                yield candidate
                return


@lru_cache(maxsize=256)
def _roots(folder: Path) -> tuple[Path, ...]:
    found = [folder]
    while not (found[-1] / ".git").exists() and found[-1].parent != found[-1]:
        found.append(found[-1].parent)
    return tuple(place for one in found for place in (one, one / "src"))


@lru_cache(maxsize=256)
def _at(path: Path) -> Source | None:
    return Checkout(str(path.parent), "").file(path.name)
