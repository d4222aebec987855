"""What the names of a Python file lead to: imports, classes, functions and their calls, and attributes of `self`."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from rlaudit.configs.syntax.class_aliases import class_aliases
from rlaudit.configs.syntax.python_scopes import Function

DEEPEST = 60
MOST_WRAPPERS = 8
# What stands between a class or function and the call that makes it run, as Ray writes it.
_OPTIONS = "options"
_PASSING_ON = {"remote", _OPTIONS}
# Ways to change a dictionary, and statements whose body may not run.
_CHANGES = {"update", "setdefault", "pop", "clear"}
_CONDITIONAL = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)
_ACTOR = "ray.remote"
# Calls that start a function in another thread, and which of their arguments it is.
_IN_THREADS = {"to_thread": 0, "run_in_executor": 1, "start_new_thread": 0}
Around = tuple[Function, ...]


@dataclass(frozen=True)
class Change:
    """`self.name["key"] = value`. key: None where it cannot be told what changes. always: under no condition."""

    key: str | None
    value: ast.expr
    around: Around
    always: bool


@dataclass
class Program:
    """One walk over a file.

    calls: with the functions around each. imports: where a bound name comes from (`LLM` is `vllm.LLM`); a relative
    import begins with a dot. functions: by name, of every class. owners: the class that a method stands in.
    aliases: the classes that a name of the file stands for, where nothing else is assigned to it.
    attributes: what `self.name` is set to in a class, with the functions around it. changes: of a dictionary that it
    holds, by their order in the file.
    """

    calls: list[tuple[ast.Call, Around]] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    functions: dict[str, list[tuple[Function, Around]]] = field(default_factory=dict)
    owners: dict[Function, str] = field(default_factory=dict)
    attributes: dict[tuple[str, str], list[tuple[ast.expr, Around]]] = field(default_factory=dict)
    changes: dict[tuple[str, str], list[Change]] = field(default_factory=dict)
    aliases: dict[str, tuple[ast.expr, ...]] = field(default_factory=dict)
    _sites: dict[str, list[tuple[ast.Call, Around]]] = field(default_factory=dict)

    def origin(self, node: ast.expr) -> str:
        """Where a name or attribute was imported from, through subclasses of the file; "" where it was not."""
        for _ in range(MOST_WRAPPERS):
            name = node.id if isinstance(node, ast.Name) else ""
            base = self.classes.get(name)
            if base is None or name in self.imports or not base.bases:
                break
            node = base.bases[0]
        if isinstance(node, ast.Name) and node.id in self.aliases and node.id not in self.imports:
            node = self.aliases[node.id][0]
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < DEEPEST:
            parts.append(node.attr)
            node = node.value
        home = self.imports.get(node.id) if isinstance(node, ast.Name) else None
        return ".".join([home, *reversed(parts)]) if home is not None else ""

    def is_actor(self, name: str) -> bool:
        """Whether Ray runs a class: `@ray.remote`, or `ray.remote(...)(Name)`."""
        cls = self.classes.get(name)
        marks = cls.decorator_list if cls is not None else []
        if any(ast.unparse(one).startswith(_ACTOR) for one in marks):
            return True
        wrapped = (call for call, _ in self.calls if ast.unparse(call.func).startswith(_ACTOR))
        return cls is not None and any(isinstance(one, ast.Name) and one.id == name for c in wrapped for one in c.args)

    def in_thread(self, around: Around) -> bool:
        """Whether the file starts one of some functions in a thread of its own."""
        started = (value for call, _ in self.calls for value in _started(call))
        names = {getattr(value, "id", getattr(value, "attr", "")) for value in started}
        return any(function.name in names for function in around)

    def sites(self, function: Function) -> list[tuple[ast.Call, Around]]:
        """The calls that run a function: by its name, for a constructor by its class's; none where two share it."""
        if not self._sites:
            for call, around in self.calls:
                self._sites.setdefault(callee(call.func), []).append((call, around))
        owner = self.owners.get(function, "")
        if function.name == "__init__":
            return self._sites.get(owner, [])
        return self._sites.get(function.name, []) if len(self.functions.get(function.name, [])) == 1 else []


def _started(call: ast.Call) -> Iterator[ast.expr]:
    """The function that a call starts in another thread."""
    name = callee(call.func)
    yield from (one.value for one in call.keywords if name == "Thread" and one.arg == "target")
    if name in _IN_THREADS:
        yield from call.args[_IN_THREADS[name] :][:1]


def callee(function: ast.expr) -> str:
    """The name that a call leads to, through `ray.remote(...)(Name)`, `.options(...)` and `.remote`; "" for options."""
    if isinstance(function, ast.Attribute) and function.attr == _OPTIONS:
        return ""
    for _ in range(MOST_WRAPPERS):
        if isinstance(function, ast.Attribute) and function.attr in _PASSING_ON:
            function = function.value
        elif isinstance(function, ast.Call):
            wrapped = [one for one in function.args if isinstance(one, ast.Name)]
            function = wrapped[0] if len(wrapped) == 1 and len(function.args) == 1 else function.func
        else:
            break
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


@lru_cache(maxsize=8)
def program_of(tree: ast.Module) -> Program:
    """The program of a file; iterative, so that nesting costs no stack."""
    program = Program()
    todo: list[tuple[ast.AST, Around, str, bool]] = [(tree, (), "", True)]
    while todo:
        node, around, owner, always = todo.pop()
        inside, within = around, owner
        if isinstance(node, ast.Call):
            program.calls.append((node, around))
            if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES and _own(node.func.value):
                change = Change(None, node, around, always)
                program.changes.setdefault((owner, _own(node.func.value)), []).append(change)
        elif isinstance(node, ast.ClassDef):
            program.classes.setdefault(node.name, node)
            within = node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            program.functions.setdefault(node.name, []).append((node, around))
            if owner:
                program.owners[node] = owner
            inside, always = (*around[-DEEPEST:], node), True
        elif isinstance(node, _CONDITIONAL):
            always = False
        elif isinstance(node, ast.Import | ast.ImportFrom):
            _imported(program, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                _assigned(program, target, node.value, owner, around, always)
        todo += [(child, inside, within, always) for child in reversed(list(ast.iter_child_nodes(node)))]
    program.aliases |= class_aliases(tree)
    return program


def _assigned(program: Program, target: ast.expr, value: ast.expr, owner: str, around: Around, always: bool) -> None:
    if name := _own(target):
        program.attributes.setdefault((owner, name), []).append((value, around))
    elif isinstance(target, ast.Subscript) and (name := _own(target.value)):
        key = target.slice.value if isinstance(target.slice, ast.Constant) else None
        change = Change(key if isinstance(key, str) else None, value, around, always)
        program.changes.setdefault((owner, name), []).append(change)


def _own(node: ast.expr) -> str:
    """`name` of `self.name`."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if own else ""  # type: ignore[attr-defined]


def _imported(program: Program, node: ast.Import | ast.ImportFrom) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            bound = alias.asname or alias.name.partition(".")[0]
            program.imports.setdefault(bound, alias.name if alias.asname else bound)
        else:
            home = "." * node.level + (node.module or "")
            program.imports.setdefault(alias.asname or alias.name, f"{home}.{alias.name}")
