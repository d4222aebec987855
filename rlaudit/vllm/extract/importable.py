"""What other programs can import from a release: its modules, and the names at the top of each.

Names that a module itself imports from vLLM count, they can be imported from it as well; what only a type checker sees
does not. Compiled modules and what is copied in when a wheel is built are not in the sources, and left out.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rlaudit.vllm.extract.modules import Tree
from rlaudit.vllm.importable import ANYTHING, COPIED_IN, HANDED_ON, ITSELF

_DEEPEST = 6


@dataclass
class _Names:
    """defined: made in the module. handed_on: imported by it, from vLLM. stars: modules all of whose names it has."""

    defined: set[str] = field(default_factory=set)
    handed_on: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    anything: bool = False


def importable(tree: Tree) -> dict[str, frozenset[str]]:
    """Names by module, spelt as the index stores them: ITSELF for the module, HANDED_ON before what it only imports."""
    files = {_dotted(path): path for path in tree.paths}
    files = {module: path for module, path in files.items() if not module.startswith(COPIED_IN)}
    read = {module: _names(tree, module, path) for module, path in files.items()}
    found = {module: frozenset({ITSELF, *_spelt(read, module, 0)}) for module in read}
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
    for node in parsed.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            given = set(_answered(node, parsed.tree))
            names.handed_on |= given
            names.anything |= not given
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
                _collect(node.orelse, names, package)
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
        for node in module.body
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
