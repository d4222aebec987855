"""Lines of a framework's source that do not go with a vLLM release: what raises or asserts there, takes the branch of
another release because it compares versions as texts, hands the engine an argument that is gone, or asks for a module,
a name or an attribute of vLLM that is gone.

Read are the file that builds the engine and what of the same package is loaded with it: the packages that it lies in,
what the worker that builds it loads besides, and what they import. Branches that a test on the version rules out are
left out.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import PurePosixPath

from packaging.version import Version

from rlaudit.configs.framework_source.bindings import calls_in, handed_over, nodes_in, place
from rlaudit.configs.framework_source.checkout import Checkout, checkout_of
from rlaudit.configs.framework_source.engine_objects import EngineObjects, engine_objects
from rlaudit.configs.framework_source.gone_imports import gone_imports, gone_texts
from rlaudit.configs.framework_source.guards import asked_by, caught_by, passes_over
from rlaudit.configs.framework_source.method_keywords import gone_keywords
from rlaudit.configs.framework_source.module_attributes import Origin, gone_of_module, modules_of
from rlaudit.configs.framework_source.moved_signatures import moved_signatures
from rlaudit.configs.framework_source.refused_sampling import CLASS, refused_sampling
from rlaudit.configs.framework_source.splatted_arguments import put_into, splatted
from rlaudit.configs.framework_source.unsent_arguments import (
    BY_NAME,
    PASSES_DTYPE,
    SWITCH,
    SWITCHED_ON,
    unsent_arguments,
)
from rlaudit.configs.framework_source.version_tests import Told, VersionTests
from rlaudit.configs.rollout_config import Stop, StopKind
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.class_aliases import class_aliases
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.python_program import Program, program_of
from rlaudit.configs.syntax.python_scopes import is_main_guard
from rlaudit.configs.syntax.python_text import parse
from rlaudit.configs.syntax.unreadable import UnreadableText

ENGINES = {"LLM", "EngineArgs", "AsyncEngineArgs"}
_FROM_COMMAND_LINE = "from_cli_args"
# What starts an engine whose arguments stand elsewhere.
_STARTS = {*ENGINES, _FROM_COMMAND_LINE, "run_server", "build_async_engine_client"}
_MOST_FILES = 16
_LONGEST = 100


@dataclass(frozen=True)
class _Where:
    """certain: it runs when the file is loaded or the engine is built. always: no branch that is open leads to it.
    decided: a test on the version leads to it. caught: kinds of stops whose error is caught, or that a test is for.
    hidden: the line of the `except` that passes over a missing attribute, 0 where none does.
    """

    certain: bool = True
    always: bool = True
    decided: bool = False
    caught: frozenset[StopKind] = frozenset()
    hidden: int = 0


@dataclass(eq=False)
class _File:
    """One file, statement by statement. engines: how it calls vLLM's own classes. held: its variables that hold objects
    of vLLM. program: its names. functions: its own. parameters: of these, and no other variables. samplers: how it
    calls vLLM's SamplingParams. modules: of vLLM, by their names here. splatted: dictionaries that go into the engine's
    call. constructed: whether its classes are made with the engine. owner: the class of the statement. inside: how many
    functions are around it. imported: the modules that are loaded with it, with the dots in front. caught: stops that
    it is ready for.
    """

    source: Source
    tests: VersionTests
    builds: frozenset[int]
    engines: frozenset[str]
    held: EngineObjects
    program: Program | None = None
    functions: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    modules: Mapping[str, str] = field(default_factory=dict)
    splatted: frozenset[str] = frozenset()
    constructed: bool = False
    owner: str = ""
    inside: int = 0
    samplers: frozenset[str] = frozenset()
    stops: list[Stop] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)
    caught: list[StopKind] = field(default_factory=list)

    def run(self, body: list[ast.stmt], where: _Where) -> bool:
        """Whether what follows is never reached."""
        return any(self._statement(line, where) for line in body)

    def _statement(self, line: ast.stmt, where: _Where) -> bool:  # noqa: PLR0911 - one for each kind of statement
        match line:
            case ast.If():
                return self._branch(line, where)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(line, where)
                return False
            case ast.ClassDef():
                outside, self.owner = self.owner, line.name
                ended = self.run(line.body, where)
                self.owner = outside
                return ended
            case ast.Try():
                self._try(line, where)
                return False
            case ast.For() | ast.AsyncFor() | ast.While():
                self._expressions(line.test if isinstance(line, ast.While) else line.iter, where)
                self.run([*line.body, *line.orelse], replace(where, always=False))
                return False
            case ast.With() | ast.AsyncWith():
                return self._with(line, where)
        self._expressions(line, where)
        for node, name in put_into(line, self.splatted) if self.splatted else ():
            self._argument(node, name, "LLM" if "LLM" in self.engines else "the engine", where)
        return self._simple(line, where)

    def _try(self, line: ast.Try, where: _Where) -> None:
        """A handler is reached where something that it catches stops the body."""
        handled = [caught_by(one.type) for one in line.handlers]
        before = len(self.caught)
        guarded = replace(where, always=where.always and not line.handlers, caught=where.caught.union(*handled))
        over = passes_over(line.handlers)
        self.run(line.body, guarded if over is None else replace(guarded, hidden=over))
        stopped = set(self.caught[before:])
        for handler, kinds in zip(line.handlers, handled, strict=True):
            reached = bool(stopped & kinds)
            unreached = frozenset() if reached else kinds
            inside = replace(where, always=where.always and reached, caught=where.caught | unreached)
            self.run(handler.body, inside)
        for body in (line.orelse, line.finalbody):
            self.run(body, replace(where, always=False))

    def _with(self, line: ast.With | ast.AsyncWith, where: _Where) -> bool:
        """`with suppress(ImportError):` is another way to write a `try`."""
        quiet = [caught_by(argument) for item in line.items if isinstance(item.context_expr, ast.Call)
                 and _name(item.context_expr.func) == "suppress" for argument in item.context_expr.args]  # fmt: skip
        inside = replace(where, caught=where.caught.union(*quiet), hidden=0 if any(quiet) else where.hidden)
        return self.run(line.body, inside)

    def _simple(self, line: ast.stmt, where: _Where) -> bool:
        match line:
            case ast.Assert() if self.tests.test(line.test) is False and where.always:
                texts = " (versions compared as texts)" if self.tests.misordered(line.test) else ""
                said = f"asserts {_shown(line.test)}, which does not hold for vLLM {self._version}{texts}"
                self._stop(line, said, where)
            case ast.Raise():
                if where.decided and where.always:
                    self._stop(line, f"raises for vLLM {self._version}: {_shown(line)}", where)
                return where.always
            case ast.Return() | ast.Continue() | ast.Break():
                return where.always
            case ast.Assign(targets=[ast.Name(id=name)]):
                self._bind(name, self.tests.value(line.value))
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)]):
                self._bind(f"self.{attribute}", self.tests.value(line.value))
            case ast.Import() | ast.ImportFrom():
                for gone in () if _is_of_a_fork(self.source) else gone_imports(line, self._version):
                    self._stop(line, gone, where, StopKind.IMPORT)
                if where.certain and where.always:
                    self._import(line)
        return False

    @property
    def _version(self) -> Version:
        return self.tests.version

    def _branch(self, line: ast.If, where: _Where) -> bool:
        self._expressions(line.test, where)
        if is_main_guard(line):
            return self.run(line.body, where)
        asked = asked_by(line.test)
        if asked is None:
            return self.run(line.orelse, where)
        where = replace(where, caught=where.caught | asked, hidden=0 if asked else where.hidden)
        holds = self.tests.test(line.test)
        if holds is not None:
            return self.run(line.body if holds else line.orelse, replace(where, decided=True))
        before = dict(self.tests.names)
        self.run(line.body, replace(where, always=False))
        then, self.tests.names = self.tests.names, before
        self.run(line.orelse, replace(where, always=False))
        self.tests.names = {name: told for name, told in self.tests.names.items() if then.get(name) == told}
        return False

    def _function(self, line: ast.FunctionDef | ast.AsyncFunctionDef, where: _Where) -> None:
        builds = any(line.lineno <= number <= (line.end_lineno or line.lineno) for number in self.builds)
        before = dict(self.tests.names)
        for one in ast.walk(line.args):
            if isinstance(one, ast.arg):
                self._bind(one.arg, None)
        makes = self.constructed and line.name == "__init__"
        self.inside += 1
        self.run(line.body, _Where(certain=where.certain and (builds or makes)))
        for refused in refused_sampling(line, self.samplers, self.tests) if self.samplers else ():
            gone = f"gives {CLASS} {refused.name}, which vLLM {self._version} does not have"
            # No rollout is made without them.
            certain = where.certain and refused.returned
            self._stop(refused.node, gone, _Where(certain=certain, always=refused.always))
        self.inside -= 1
        self.tests.names = before

    def _bind(self, name: str, told: Told | None) -> None:
        if told is not None:
            self.tests.names[name] = told
        else:
            self.tests.names.pop(name, None)

    def _import(self, line: ast.Import | ast.ImportFrom) -> None:
        if isinstance(line, ast.Import):
            self.imported += [one.name for one in line.names]
            return
        module = "." * line.level + (line.module or "")
        self.imported += [module, *(f"{module}.{one.name}" if line.module else f"{module}{one.name}"
                                    for one in line.names)]  # fmt: skip
        for one in line.names:
            if line.module == "vllm" and one.name == "__version__":
                self._bind(one.asname or one.name, Told(str(self._version), True))

    def _expressions(self, line: ast.AST, where: _Where) -> None:
        for node in ast.walk(line):
            asserted = isinstance(line, ast.Assert) and node is line.test
            if isinstance(node, ast.Compare) and not asserted and self.tests.misordered(node):
                holds = "true" if self.tests.test(node) else "false"
                said = f"compares versions as texts: {_shown(node)} is {holds} for vLLM {self._version}"
                self._stop(node, f"{said}, and versions compare the other way", where, StopKind.ORDER)
            elif isinstance(node, ast.Call):
                if ast.unparse(node.func) in self.engines:
                    self._gone(node, where)
                if self.engines:
                    self._method(node, where)
                for gone in () if _is_of_a_fork(self.source) else gone_texts(node, self._version):
                    self._stop(node, gone, where, StopKind.IMPORT)
                for said in () if _is_of_a_fork(self.source) else self._moved(node):
                    # Of several functions that build an engine, one may be for other nodes.
                    self._stop(node, said, replace(where, certain=where.certain and not self.inside))
                for said, doubt in self._unsent(node):
                    self._stop(node, said, where, StopKind.UNSENT, doubt=doubt)
            elif isinstance(node, ast.Attribute):
                if of_module := gone_of_module(node, self.modules, self._version):
                    self._stop(node, of_module, where, StopKind.ATTRIBUTE)
                for gone, apart in self.held.gone(node, self._version, self.owner):
                    self._stop(node, gone, where, StopKind.ATTRIBUTE, apart=apart)

    def _unsent(self, call: ast.Call) -> Iterator[tuple[str, bool]]:
        """Nothing where the file lets everything be sent, in whatever branch; a doubt where it may run the engine in
        its own process.
        """
        if SWITCH not in self.source.text:
            for said, doubt in unsent_arguments(call, self.functions, self.parameters, self._version):
                yield said, doubt or self.held.in_process

    def _moved(self, call: ast.Call) -> Iterator[str]:
        """Nothing of the engine's own classes and of its sampling parameters: their arguments are asked for by name."""
        if self.program is not None and _name(call.func) not in {*ENGINES, CLASS}:
            yield from moved_signatures(call, self.program, self._version)

    def _gone(self, call: ast.Call, where: _Where) -> None:
        alias = class_aliases(parse(self.source.text)).get(_name(call.func), ())
        name = _name(alias[-1] if alias else call.func)
        for keyword in call.keywords:
            if keyword.arg is not None:
                self._argument(keyword, keyword.arg, name, where)

    def _argument(self, node: ast.AST, name: str, engine: str, where: _Where) -> None:
        from rlaudit.vllm.removed import removed

        gone = removed("engine", name, self._version)
        # LLM(...) takes this one and warns.
        if gone is not None and (gone.name != "swap_space" or engine != "LLM"):
            said = f"gives {engine} {gone.name}, which vLLM {self._version} does not have. {gone.instead}"
            self._stop(node, said.strip().removesuffix("."), where)

    def _method(self, call: ast.Call, where: _Where) -> None:
        """Keywords of a method of the engine."""
        kind = self.held.kind(call.func.value, self.owner) if isinstance(call.func, ast.Attribute) else None
        for name in gone_keywords(kind, call, self._version) if kind is not None else ():
            said = f"gives {kind}.{_name(call.func)} {name}, which that of vLLM {self._version} does not take"
            self._stop(call, said, where)

    def _stop(
        self, node: ast.AST, what: str, where: _Where, kind: StopKind = StopKind.CODE, *,
        apart: bool = False, doubt: bool = False,
    ) -> None:  # fmt: skip
        if kind in where.caught:
            self.caught.append(kind)
            if kind is not StopKind.ATTRIBUTE or not where.hidden:
                return
            what += f"; the `except` in line {where.hidden} passes over it, and the rest of the `try` is never done"
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        written = Place(self.source.path, line, column + 1, "")
        certain = where.certain and where.always and not doubt
        self.stops.append(Stop(place(self.source, node), what, certain, kind, written, apart, doubt))


@lru_cache(maxsize=64)
def stops_of(
    checkout: Checkout, engine: tuple[str, ...], vllm: Version, loaded: tuple[tuple[str, str], ...] = ()
) -> tuple[Stop, ...]:
    """What stops, or goes another way than meant, in a release. engine: the files that may build the engine. loaded:
    pairs of a worker's file and one that it loads besides the engine's, if it imports it.
    """
    names = frozenset(_engine_names(vllm))
    built = next((file for file in engine if (source := checkout.file(file)) is not None
                  and (handed_over(source, names).blocks or calls_in(source, _STARTS))), None)  # fmt: skip
    if built is None:
        return ()
    besides = [file for worker, file in loaded if _imports(checkout, worker, file)]
    waiting, seen = [name for file in (built, *besides) for name in (*_packages(file), file)], set[str]()
    found: dict[Stop, None] = {}
    made = {file for _, file in loaded}
    while waiting and len(seen) < _MOST_FILES:
        name = waiting.pop(0)
        source = checkout.file(name) if name not in seen else None
        if source is None or (name != built and "vllm" not in source.text):
            continue
        seen.add(name)
        read = _read(source, vllm, origin=partial(_handed_on, checkout, name), constructed=name in made)
        found |= dict.fromkeys(_of_package(stop, checkout) for stop in read.stops
                               if stop.kind is not StopKind.UNSENT or not checkout.says(SWITCHED_ON))  # fmt: skip
        waiting += [file for module in read.imported for file in _files(name, module, checkout)]
    return tuple(found)


def _of_package(stop: Stop, checkout: Checkout) -> Stop:
    """A line of a framework. What a parameter named dtype is, whoever passes one in the package tells."""
    told = stop.doubt and stop.kind is StopKind.UNSENT and checkout.says(PASSES_DTYPE)
    return replace(stop, place=None, doubt=stop.doubt and not told)


def _handed_on(checkout: Checkout, file: str, module: str, name: str) -> str:
    """Where a name comes from that a file imports from a module of its package."""
    for path in _files(file, module, checkout):
        source = checkout.file(path)
        if source is not None:
            try:
                return program_of(parse(source.text)).imports.get(name, "")
            except (UnreadableText, RecursionError):
                return ""
    return ""


def _imports(checkout: Checkout, worker: str, file: str) -> bool:
    """Whether a worker imports a file of its package, anywhere: in verl only when it builds the engine."""
    source = checkout.file(worker)
    lines = [line for line in nodes_in(source) if isinstance(line, ast.ImportFrom)] if source is not None else []
    modules = ("." * line.level + (line.module or "") for line in lines)
    return any(file in _files(worker, module, checkout) for module in modules)


def stops_in(source: Source, vllm: Version, *, asks_calls: bool = False) -> tuple[Stop, ...]:
    """The same of a file that builds an engine itself. asks_calls: whether arguments that are gone count; where the
    file is the config, `removed-flag` speaks of them.
    """
    return tuple(_read(source, vllm, asks_calls=asks_calls).stops)


def _nowhere(_module: str, _name: str) -> str:
    return ""


def _read(
    source: Source, vllm: Version, *, asks_calls: bool = True, origin: Origin = _nowhere, constructed: bool = False
) -> _File:
    try:
        tree = parse(source.text)
    except (UnreadableText, RecursionError):
        return _File(source, VersionTests(vllm), frozenset(), frozenset(), EngineObjects())
    blocks = handed_over(source, frozenset(_engine_names(vllm))).blocks
    called = (call.lineno for call in calls_in(source, _STARTS))
    builds = frozenset([*(int(block.rpartition(":")[2]) for block in blocks), *called])
    engines = frozenset(_spelt(tree, ENGINES)) if asks_calls else frozenset()
    functions = {line.name: line for line in tree.body if isinstance(line, ast.FunctionDef)}
    file = _File(
        source,
        VersionTests(vllm, functions=functions),
        builds,
        engines,
        engine_objects(tree),
        program=program_of(tree),
        functions=frozenset(program_of(tree).functions),
        parameters=_parameters(tree) if BY_NAME in source.text else frozenset(),
        samplers=frozenset(_spelt(tree, {CLASS})) if asks_calls and CLASS in source.text else frozenset(),
        modules=modules_of(tree, origin),
        splatted=splatted(tree, engines),
        constructed=constructed,
    )
    file.run(tree.body, _Where())
    return file


def _parameters(tree: ast.Module) -> frozenset[str]:
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)) - stored


@lru_cache(maxsize=64)
def _is_of_a_fork(source: Source) -> bool:
    """Whether a copy of vLLM itself lies around a file: what that one has is not known here."""
    return checkout_of(replace(source, given=()), "vllm", "vllm/engine/arg_utils.py") is not None


def _spelt(tree: ast.Module, names: set[str]) -> Iterator[str]:
    """Some classes of vLLM as a file calls them; another program's may have the same names."""
    own = {f"vllm.{name}" for name in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "vllm":
            own |= {one.asname or one.name for one in node.names if one.name in names}
    yield from own
    yield from (name for name, classes in class_aliases(tree).items() if {ast.unparse(one) for one in classes} <= own)


def _engine_names(vllm: Version) -> frozenset[str]:
    from rlaudit.vllm.catalogue import Catalogue

    return frozenset(Catalogue.at(vllm).engine)


def _packages(file: str) -> Iterator[str]:
    """The `__init__.py` of every package that a file lies in, the outermost first."""
    return (f"{folder}/__init__.py" for folder in reversed(PurePosixPath(file).parents) if str(folder) != ".")


def _files(file: str, module: str, checkout: Checkout) -> Iterator[str]:
    """Where a module of the same package may lie, under the package's usual name."""
    name = module.lstrip(".")
    dots = len(module) - len(name)
    if not dots:
        first, _, rest = name.partition(".")
        if first != checkout.folder:
            return
        name = f"{checkout.package}.{rest}" if rest else checkout.package
    parents = PurePosixPath(file).parents
    if dots > len(parents):
        return
    home = parents[dots - 1] if dots else PurePosixPath()
    path = str(home.joinpath(*name.split("."))) if name else str(home)
    yield from (f"{path}/__init__.py", f"{path}.py")


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + '...'}`"
