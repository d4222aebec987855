"""The modules of a project that its files import, found by name within the work tree, and the functions of them that a
program hands its engine to.
"""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from rlaudit.configs.lost_updates import AN_ENGINE
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.files.work_tree import is_inside

# Where a project's packages lie, from its root.
_ROOTS = ("", "src/")
_NO_LINE_END = re.compile(r"[^\r\n]")


def module_file(source: Source, name: str, level: int = 0) -> Source | None:
    """Return the file of a module. level: of a relative import, 1 for `from .engine import LLM`."""
    package = name.partition(".")[0]
    if not level and package and not _is_above(str(Path(source.path).absolute().parent), source.trees, package):
        return None
    path = name.replace(".", "/")
    for file in (f"{path}.py", f"{path}/__init__.py") if name else ("__init__.py",):
        if level:
            there = source.neighbour("../" * (level - 1) + file)
        else:
            there = next((at for root in _ROOTS if (at := source.above(root + file)) is not None), None)
        if there is not None:
            return there
    return None


# A program's files import the same packages, most of which are installed and not the project's own.
@lru_cache(maxsize=4096)
def _is_above(folder: str, trees: tuple[str, ...], package: str) -> bool:
    """Return whether a package or a module lies in a folder or in one above it, within the work trees."""
    folders = [above for above in (Path(folder), *Path(folder).parents) if is_inside(above, trees)]
    return any(
        (above / root / name).exists() for above in folders for root in _ROOTS for name in (package, f"{package}.py")
    )


def given_the_engine(source: Source) -> tuple[Source, ...]:
    """Return each imported function that the program calls with its engine, as its file with nothing else in it.

    Everything else is blank, so that places in the file stay right.
    """
    if source.suffix != ".py" or "import" not in source.text:
        return ()
    try:
        tree = parse(source.text)
    except UnreadableText:  # the reader of the program says so
        return ()
    imported = dict(_imported(tree))
    called = dict.fromkeys(
        imported[name] for node in ast.walk(tree) if isinstance(node, ast.Call) and _takes_an_engine(node)
        for name in [ast.unparse(node.func)] if name in imported
    )  # fmt: skip
    functions = (_alone(source, *names) for names in called)
    return tuple(function for function in functions if function is not None)


def _imported(tree: ast.Module) -> Iterator[tuple[str, tuple[str, int, str]]]:
    """Yield how a program calls each imported function, and its module, the import's level, and its name there."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, (node.module or "", node.level, alias.name)
                modules[alias.asname or alias.name] = (f"{node.module or ''}.{alias.name}".lstrip("."), node.level)
        elif isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: (alias.name, 0) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if owner in modules:
                yield f"{owner}.{node.func.attr}", (*modules[owner], node.func.attr)


def _takes_an_engine(call: ast.Call) -> bool:
    handed = (*call.args, *(keyword.value for keyword in call.keywords))
    names = (getattr(value, "attr", getattr(value, "id", "")) for value in handed)
    return any(AN_ENGINE.search(name) for name in names)


def _alone(source: Source, module: str, level: int, name: str) -> Source | None:
    """Return a module's file with one of its functions alone; None if neither is here."""
    file = module_file(source, module, level)
    if file is None or file.outside or f"def {name}" not in file.text:
        return None
    try:
        tree = parse(file.text)
    except UnreadableText as error:
        source.refuse(file.path, error)
        return None
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    function = next((node for node in functions if node.name == name), None)
    if function is None:
        return None
    lines = file.text.splitlines(keepends=True)
    first, last = function.lineno - 1, function.end_lineno or function.lineno
    kept = [line if first <= at < last else _NO_LINE_END.sub(" ", line) for at, line in enumerate(lines)]
    return file.with_text("".join(kept))
