"""The modules of a source tree, parsed when they are asked for, and what a name in one of them stands for."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.expr


@dataclass(frozen=True, eq=False)
class Module:
    """One file: its tree and what its top level binds."""

    path: str
    tree: ast.Module
    bound: Mapping[str, Definition]
    imported: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, eq=False)
class FieldNode:
    """An annotated name of a class body: where it stands and the expression of its default."""

    name: str
    annotation: ast.expr
    default: ast.expr | None
    module: Module
    line: int

    @property
    def at(self) -> str:
        """`vllm/config.py:123`."""
        return f"{self.module.path}:{self.line}"


@dataclass(eq=False)
class Tree:
    """The `.py` files of a release. paths: relative to the folder that holds `vllm/`; read: the text of one."""

    paths: frozenset[str]
    read: Callable[[str], str]
    _parsed: dict[str, Module] = field(default_factory=dict)

    def module(self, path: str) -> Module | None:
        """The module in a file, or None where the release has no such file."""
        if path not in self.paths:
            return None
        if path not in self._parsed:
            tree = ast.parse(self.read(path), path)
            bound: dict[str, Definition] = {}
            imported: dict[str, tuple[str, str]] = {}
            _bind(tree.body, bound, imported)
            self._parsed[path] = Module(path, tree, bound, imported)
        return self._parsed[path]

    def find(self, name: str, module: Module, seen: frozenset[tuple[str, str]] = frozenset()) -> (
        tuple[Module, Definition] | None
    ):  # fmt: skip
        """What a name used in a module stands for, through imports; config classes are found without one."""
        key = (module.path, name)
        if key in seen:
            return None
        if name in module.bound:
            return module, module.bound[name]
        if name in module.imported:
            dotted, original = module.imported[name]
            source = self.module(self._file(dotted, module) or "")
            if source is not None and (found := self.find(original, source, seen | {key})) is not None:
                return found
        return self._config_classes.get(name)

    def find_class(self, name: str, module: Module) -> tuple[Module, ast.ClassDef] | None:
        """As `find`, for classes only."""
        found = self.find(name, module)
        return (found[0], found[1]) if found is not None and isinstance(found[1], ast.ClassDef) else None

    def bases(self, module: Module, cls: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
        """The classes of this tree that a class is derived from."""
        for written in cls.bases:
            base = written.value if isinstance(written, ast.Subscript) else written
            if isinstance(base, ast.Name) and base.id != cls.name:
                found = self.find_class(base.id, module)
                if found is not None and found[1] is not cls:
                    yield found

    def fields(self, module: Module, cls: ast.ClassDef) -> dict[str, FieldNode]:
        """Annotated fields in order, inherited ones first; class variables are none."""
        fields: dict[str, FieldNode] = {}
        for base_module, base in self.bases(module, cls):
            fields.update(self.fields(base_module, base))
        for node in cls.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
                if not ast.unparse(node.annotation).startswith(("ClassVar", "InitVar")):
                    fields[name] = FieldNode(name, node.annotation, node.value, module, node.lineno)
        return fields

    def class_value(self, name: str, module: Module, cls: ast.ClassDef) -> tuple[Module, ast.expr, int] | None:
        """The expression that a class body, or a base's, binds a name to."""
        for node in cls.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                assert isinstance(node, ast.Assign | ast.AnnAssign)
                return (module, node.value, node.lineno) if node.value is not None else None
        for base_module, base in self.bases(module, cls):
            if (found := self.class_value(name, base_module, base)) is not None:
                return found
        return None

    def method(self, name: str, module: Module, cls: ast.ClassDef) -> (
        tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef] | None
    ):  # fmt: skip
        """A method of a class or of its bases; the last of several, overloads come first."""
        for node in reversed(cls.body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                return module, node
        for base_module, base in self.bases(module, cls):
            if (found := self.method(name, base_module, base)) is not None:
                return found
        return None

    @cached_property
    def _config_classes(self) -> dict[str, tuple[Module, Definition]]:
        classes: dict[str, tuple[Module, Definition]] = {}
        for path in sorted(self.paths):
            if path == "vllm/config.py" or path.startswith("vllm/config/"):
                module = self.module(path)
                assert module is not None
                for name, definition in module.bound.items():
                    if isinstance(definition, ast.ClassDef):
                        classes.setdefault(name, (module, definition))
        return classes

    def _file(self, dotted: str, module: Module) -> str | None:
        level = len(dotted) - len(dotted.lstrip("."))
        parts = [part for part in dotted.split(".") if part]
        if level:
            folder = module.path.split("/")[:-1]
            parts = folder[: len(folder) - level + 1] + parts
        stem = "/".join(parts)
        return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in self.paths), None)


def _bind(body: list[ast.stmt], bound: dict[str, Definition], imported: dict[str, tuple[str, str]]) -> None:
    for node in body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound[name] = node
            case ast.Assign(targets=targets, value=value):
                bound.update({target.id: value for target in targets if isinstance(target, ast.Name)})
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                bound[name] = value
            case ast.ImportFrom(module=dotted, level=level, names=names):
                for alias in names:
                    imported[alias.asname or alias.name] = ("." * level + (dotted or ""), alias.name)
            case ast.If(body=then, orelse=orelse):  # TYPE_CHECKING blocks tell where a name comes from
                _bind(then, bound, imported)
                _bind(orelse, bound, imported)
            case ast.Try(body=then):
                _bind(then, bound, imported)
