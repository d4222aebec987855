"""What other programs can import from a release: its modules, and the names at the top of each.

Names that a module itself imports from vLLM count, they can be imported from it as well; what only a type checker sees
does not. Left out are names that begin with an underscore, what the modules of models only import, and compiled modules
and what is copied in when a wheel is built, which are not in the sources.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from extract_catalogue.modules import Tree
from extract_catalogue.objects import objects
from rlaudit.vllm.importable import ANYTHING, COPIED_IN, FILE, HANDED_ON, ITSELF, MODELS, Index, spans

ANSWERS = "__getattr__"  # of a module: makes names when they are asked for
_DEEPEST = 6


@dataclass
class _Names:
    """defined: made in the module. handed_on: imported by it, from vLLM. stars: modules all of whose names it has."""

    defined: set[str] = field(default_factory=set)
    handed_on: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    anything: bool = False


def record_importable(version: Version, tree: Tree, folder: Path) -> None:
    """Put a release into the one file of all of them."""
    path = folder / FILE
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"releases": []}
    known = tuple(map(Version, stored["releases"]))
    by_release: dict[str, dict[Version, Mapping[str, Iterable[str]]]] = {}
    for section in ("modules", "objects"):
        index = Index(known, stored.get(section, {}))
        by_release[section] = {one: {home: index.names(home, one) for home in index.spans} for one in known}
    by_release["modules"][version] = importable(tree)
    by_release["objects"][version] = objects(tree)
    write_importable(by_release, path)


def write_importable(by_release: Mapping[str, Mapping[Version, Mapping[str, Iterable[str]]]], path: Path) -> None:
    """One line for each module and object, so that two states of the file can be compared with any diff."""
    parts = [f'"releases":{json.dumps([str(version) for version in sorted(by_release["modules"])])}']
    for section, releases in by_release.items():
        lines = (f"{json.dumps(home)}:{json.dumps(lists)}" for home, lists in spans(releases).items())
        parts.append(f'"{section}":{{\n' + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def importable(tree: Tree) -> dict[str, frozenset[str]]:
    """Names by module, spelt as the index stores them: ITSELF for the module, HANDED_ON before what it only imports."""
    files = {_dotted(path): path for path in tree.paths}
    files = {module: path for module, path in files.items() if not module.startswith(COPIED_IN)}
    read = {module: _names(tree, module, path) for module, path in files.items()}
    found = {module: frozenset({ITSELF, *_spelt(read, module, 0)}) for module in read}
    for module in (one for one in found if one.startswith(MODELS)):
        found[module] = frozenset(name for name in found[module] if not name.startswith(HANDED_ON))
    for module in list(found):
        for above in _above(module):
            found.setdefault(above, frozenset({ITSELF}))
    return found


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _above(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def _spelt(read: Mapping[str, _Names], module: str, depth: int) -> Iterator[str]:
    names = read[module]
    yield from names.defined
    yield from (HANDED_ON + name for name in names.handed_on - names.defined)
    if names.anything:
        yield ANYTHING
    for source in names.stars:
        if source not in read or depth > _DEEPEST:
            yield ANYTHING
            continue
        yield from (HANDED_ON + name.removeprefix(HANDED_ON) for name in _spelt(read, source, depth + 1)
                    if name.removeprefix(HANDED_ON) not in names.defined)  # fmt: skip


def _names(tree: Tree, module: str, path: str) -> _Names:
    names = _Names()
    parsed = tree.module(path)
    assert parsed is not None
    package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
    _collect(parsed.tree.body, names, package)
    if ANSWERS in names.defined:
        makers = (node for node in ast.walk(parsed.tree) if isinstance(node, ast.FunctionDef) and node.name == ANSWERS)
        given = {name for node in makers for name in _answered(node, parsed.tree)}
        names.handed_on |= given
        names.anything |= not given
    names.defined = {name for name in names.defined if not name.startswith("_")}
    names.handed_on = {name for name in names.handed_on if not name.startswith("_") and name.isidentifier()}
    return names


def _collect(body: list[ast.stmt], names: _Names, package: str) -> None:
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names.defined.add(node.name)
            case ast.Assign(targets=targets):
                names.defined.update(name for target in targets for name in _bound(target))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                names.defined.add(name)
            case ast.Import(names=aliases):
                names.handed_on.update(one.asname for one in aliases if one.asname and one.name.startswith("vllm"))
            case ast.ImportFrom():
                _imported(node, names, package)
            case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
                other = _Names()
                _collect(node.orelse, other, package)
                # A stand-in for what only type checkers import is no home of the name.
                names.defined |= other.defined & {ANSWERS}
                names.handed_on |= other.handed_on | other.defined - {ANSWERS}
            case ast.Expr(value=value) if "globals()" in ast.unparse(value):
                names.anything = True
            case _:
                for part in ("body", "orelse", "finalbody"):
                    _collect(getattr(node, part, []), names, package)
                for handler in getattr(node, "handlers", []):
                    _collect(handler.body, names, package)


def _imported(node: ast.ImportFrom, names: _Names, package: str) -> None:
    home = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        home = ".".join([*above, *([node.module] if node.module else [])])
    if home.partition(".")[0] != "vllm":
        return
    for alias in node.names:
        if alias.name == "*":
            names.stars.append(home)
        else:
            names.handed_on.add(alias.asname or alias.name)


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "globals()":
        yield ANYTHING
    else:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _answered(function: ast.FunctionDef, module: ast.Module) -> Iterator[str]:
    """The names that a module's `__getattr__` answers to: texts it compares with, keys of a table it looks into."""
    tables = {
        target.id: node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Compare):
            yield from (one.value for one in ast.walk(node)
                        if isinstance(one, ast.Constant) and isinstance(one.value, str))  # fmt: skip
        elif isinstance(node, ast.Name) and node.id in tables:
            yield from (key.value for key in tables[node.id].keys
                        if isinstance(key, ast.Constant) and isinstance(key.value, str))  # fmt: skip
