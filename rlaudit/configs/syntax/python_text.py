"""Calls in Python source, with literals, module constants and literal dictionaries resolved.

The file is parsed and never run. A name counts as known where it is assigned exactly once in its scope, to something
that is known; what a loop, a condition or another module decides is Unknown with the reason. An option of the
program's own command line is taken at its default, which the call says. An argument of a function is what the calls of
the function in this file pass, where they agree; what a function returns is followed where it has
one `return`.
"""

import ast
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import REST, Node, Unknown
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.python_blocks import just_assigned
from rlaudit.configs.syntax.python_literals import (
    LONGEST_TEXT,
    computed,
    converted,
    literal_texts,
    negated,
    short,
    torch_dtype,
)
from rlaudit.configs.syntax.python_options import options_of
from rlaudit.configs.syntax.python_program import MOST_WRAPPERS, Around, Program, program_of
from rlaudit.configs.syntax.python_scopes import Function, Scope, scope_of

MOST_CALLS = 300
DEEPEST = 60
MOST_VALUES = 20_000
MOST_SITES = 8
_LINE_END = re.compile(r"\r\n|\r|\n")


MOST_CHARACTERS = 400_000


class UnreadablePython(ValueError):
    """Not Python 3, or nested too deeply. `line` is 1-based, 0 where unknown."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


@lru_cache(maxsize=16)
def parse(text: str) -> ast.Module:
    """The syntax tree, which nobody changes: a file is asked many things. Raises UnreadablePython."""
    if len(text) > MOST_CHARACTERS:
        raise UnreadablePython(f"more than {MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        read_as = f"as read by Python {sys.version_info.major}.{sys.version_info.minor}"
        raise UnreadablePython(f"{error.msg or 'not Python'} ({read_as})", error.lineno or 0) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise UnreadablePython(str(error) or "nested too deeply") from None


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a name that was asked for.

    name: as asked for, whatever module it is reached through. arguments: keywords, those of a literal `**kwargs`
    included. positional: in order. place: of the whole call. open: why further keywords may be passed (`**kwargs` that
    the file does not tell); "" where it is complete. function: the function it stands in, "" at module level. origin:
    where the name was imported from (`vllm.LLM`), "" where the file does not import it. own: arguments that a subclass
    in this file takes itself. over_http: whether it is a request to a server's route that ends in the call. options:
    arguments that are taken at the default of an option of the program, with the option. is_actor: whether it is run
    in an actor of Ray, as the file itself says.
    """

    name: str
    arguments: dict[str, Node]
    positional: tuple[Node, ...]
    place: Place
    open: str = ""
    function: str = ""
    origin: str = ""
    own: frozenset[str] = frozenset()
    over_http: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    is_actor: bool = False


def calls(text: str, path: str, names: Collection[str]) -> tuple[Call, ...]:
    """Every call of one of `names`, in order of the file. Raises UnreadablePython.

    A subclass of a name counts as the name, and so does `ray.remote(...)(Name).remote(...)` and `Name.remote(...)`.
    """
    tree = parse(text)
    reader = _Reader(text, path, tree, frozenset(names))
    return tuple(sorted(reader.calls(), key=lambda call: call.place.start))


def displays(text: str, path: str, wanted: Callable[[str], bool]) -> tuple[Node, ...]:
    """Every list and tuple that holds a text which is wanted, starred lists that the file tells filled in.

    Raises UnreadablePython.
    """
    return tuple(_Reader(text, path, parse(text), frozenset()).displays(wanted))


def dictionaries(text: str, path: str, key: str) -> tuple[Node, ...]:
    """Every dictionary display that has a key, the outermost first. Raises UnreadablePython."""
    reader = _Reader(text, path, parse(text), frozenset())
    found = [
        (node, functions) for node, functions in reader.nodes()
        if isinstance(node, ast.Dict) and any(isinstance(one, ast.Constant) and one.value == key for one in node.keys)
    ]  # fmt: skip
    return tuple(reader.node(node, reader.scope(functions), "", None, 0) for node, functions in found)


def span(node: ast.expr, text: str) -> tuple[int, int]:
    """Start and end of an expression in characters."""
    place = _Reader(text, "", ast.Module([], []), frozenset()).place(node, "")
    return place.start, place.end


class _Reader:
    def __init__(self, text: str, path: str, tree: ast.Module, names: frozenset[str]) -> None:
        self.tree, self.names, self.count = tree, names, 0
        self.index = LineIndex(text, path)
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
        self.program: Program = program_of(tree)
        self.options = options_of(tree)
        self.taken: list[str] = []
        self.subclasses = self._subclasses()
        self.scopes: dict[ast.AST, Scope] = {}

    def nodes(self) -> Iterator[tuple[ast.AST, tuple[Function, ...]]]:
        """All of the tree with the functions around it; iterative, so that nesting costs no stack."""
        todo: list[tuple[ast.AST, tuple[Function, ...]]] = [(self.tree, ())]
        while todo:
            node, functions = todo.pop()
            yield node, functions
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions = (*functions[-DEEPEST:], node)
            todo += [(child, functions) for child in ast.iter_child_nodes(node)]

    def displays(self, wanted: Callable[[str], bool]) -> Iterator[Node]:
        """Lists and tuples, as they come."""
        for node, functions in self.nodes():
            if isinstance(node, ast.List | ast.Tuple) and any(wanted(text) for text in literal_texts(node)):
                elements: list[Node] = []
                for one in node.elts:
                    inner = one.value if isinstance(one, ast.Starred) else one
                    found = self.node(inner, self.scope(functions), "", None, 0)
                    elements += found.value if inner is not one and isinstance(found.value, tuple) else (found,)
                yield Node(tuple(elements), self.place(node, ""))

    def calls(self) -> Iterator[Call]:
        """All calls, scope by scope."""
        wanted = [
            (call, functions, found) for call, functions in self.program.calls if (found := self.called(call.func))
        ]
        if len(wanted) > MOST_CALLS:
            raise UnreadablePython(f"more than {MOST_CALLS} engines or samplers", wanted[MOST_CALLS][0].lineno)
        for call, functions, found in wanted:
            yield self.call(call, found, self.scope(functions))

    def _subclasses(self) -> dict[str, str]:
        """Classes of the file by the name that was asked for and that they, or their bases, are based on."""
        found: dict[str, str] = {}
        for _ in range(MOST_WRAPPERS):
            more = {
                name: asked
                for name, node in self.program.classes.items()
                if node.bases and name not in found
                and (asked := _asked(node.bases[0], self.names, found, self.program))
            }  # fmt: skip
            if not more:
                break
            found |= more
        return found

    def scope(self, functions: Around) -> Scope:
        """The scope of the innermost function."""
        key = functions[-1] if functions else self.tree
        if key not in self.scopes:
            above = self.scope(functions[:-1]) if functions else None
            self.scopes[key] = scope_of(key, getattr(key, "name", ""), above)
        return self.scopes[key]

    def asked(self, node: ast.expr) -> str:
        """The name that was asked for, if the expression is one."""
        return _asked(node, self.names, self.subclasses, self.program)

    def called(self, function: ast.expr) -> ast.expr | None:
        """The expression that a call's function stands for, through `ray.remote(...)(Name).options(...).remote`."""
        if self.asked(function) or not (isinstance(function, ast.Attribute) and function.attr == "remote"):
            return function if self.asked(function) else None
        inner: ast.expr = function.value
        for _ in range(MOST_WRAPPERS):
            if isinstance(inner, ast.Call):
                wrapped = [argument for argument in inner.args if self.asked(argument)]
                if wrapped:
                    return wrapped[0]
                inner = inner.func
            elif isinstance(inner, ast.Attribute) and not self.asked(inner):
                inner = inner.value
            else:
                break
        return inner if self.asked(inner) else None

    def call(self, node: ast.Call, named: ast.expr, scope: Scope) -> Call:
        """One call. named: the expression that its function stands for."""
        name = self.asked(named)
        arguments: dict[str, Node] = {}
        options: dict[str, str] = {}
        open_reason = ""
        for keyword in node.keywords:
            self.taken.clear()
            if keyword.arg is not None:
                where = self.keyword_place(keyword)
                arguments[keyword.arg] = self.node(keyword.value, scope, keyword.arg, where, 0)
                options |= dict.fromkeys(self.taken and [keyword.arg], " and ".join(self.taken))
                continue
            mapping = self.node(keyword.value, scope, name, None, 0)
            if isinstance(mapping.value, Unknown) and isinstance(keyword.value, ast.Name):
                assigned = just_assigned(scope.function or self.tree, keyword.value)
                if assigned is not None:
                    mapping = self.node(assigned, scope, name, None, 0)
                    between = [one for one in scope.mutated.get(keyword.value.id, []) if one[1] is not None
                               and assigned.lineno <= one[1].lineno <= keyword.value.lineno]  # fmt: skip
                    mapping = replace(mapping, value=self.mutated(between, scope, mapping.value, 0))
            if isinstance(mapping.value, dict):
                arguments = {**mapping.value, **arguments}
                options |= dict.fromkeys(self.taken and mapping.value, " and ".join(self.taken))
                open_reason = open_reason or _more(mapping)
            else:
                reason = mapping.value.reason if isinstance(mapping.value, Unknown) else "it is not a dictionary"
                open_reason = open_reason or f"**{ast.unparse(keyword.value)[:60]}: {reason}"
        arguments.pop(REST, None)
        positional = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                open_reason = open_reason or "a starred argument"
            else:
                positional.append(self.node(argument, scope, name, None, 0))
        origin, own = self.program.origin(named), self.own(named)
        place = self.place(node, name)
        owner = self.program.owners.get(scope.function, "") if scope.function is not None else ""
        is_actor = named is not node.func or self.program.is_actor(owner)
        found = Call(name, arguments, tuple(positional), place, open_reason, scope.name, origin, own)
        return replace(found, options=options, is_actor=is_actor)

    def own(self, named: ast.expr) -> frozenset[str]:
        """The keywords that the constructor of a subclass takes for itself."""
        defined = self.program.classes.get(named.id) if isinstance(named, ast.Name) else None
        made = [one for one in defined.body if getattr(one, "name", "") == "__init__"] if defined is not None else []
        if not made or not isinstance(made[0], ast.FunctionDef):
            return frozenset()
        return frozenset(one.arg for one in (*made[0].args.args[1:], *made[0].args.kwonlyargs))

    def keyword_place(self, keyword: ast.keyword) -> Place:
        """The place of a keyword's name."""
        start = self.offset(keyword.lineno, keyword.col_offset)
        return self.index.place(start, start + len(keyword.arg or ""), keyword.arg or "")

    def place(self, node: ast.expr, setting: str) -> Place:
        """The place of an expression."""
        start = self.offset(node.lineno, node.col_offset)
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return self.index.place(start, max(start, end), setting)

    def offset(self, line: int, column: int) -> int:
        """Characters before a place that `ast` gives in UTF-8 bytes of a line."""
        start = self.starts[min(line, len(self.starts) - 1) - 1]
        text = self.index.text[start : self.starts[min(line, len(self.starts) - 1)]]
        if text.isascii():
            return start + min(column, len(text))
        return start + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))

    def node(self, expression: ast.expr, scope: Scope, setting: str, key: Place | None, depth: int) -> Node:
        """An expression as a node."""
        place = self.place(expression, setting)
        value = self.value(expression, scope, setting, depth)
        text = self.index.text[place.start : place.end] if not isinstance(value, dict | tuple) else ""
        return Node(value, place, key, text)

    def value(self, expression: ast.expr, scope: Scope, setting: str, depth: int) -> Any:  # noqa: PLR0911 - one for each kind of expression
        """What an expression evaluates to, or Unknown."""
        self.count += 1
        if depth > DEEPEST or self.count > MOST_VALUES:
            return Unknown("the expression is nested too deeply")
        if isinstance(expression, ast.Constant):
            constant = expression.value
            return constant if constant is None or isinstance(constant, bool | int | float | str) else Unknown("bytes")
        if isinstance(expression, ast.Dict):
            return self.mapping(expression, scope, setting, depth)
        if isinstance(expression, ast.List | ast.Tuple | ast.Set):
            return tuple(self.node(one, scope, setting, None, depth + 1) for one in expression.elts)
        if isinstance(expression, ast.Name):
            return self.name(expression.id, scope, setting, depth)
        if isinstance(expression, ast.UnaryOp):
            return negated(expression.op, self.value(expression.operand, scope, setting, depth + 1))
        if isinstance(expression, ast.BinOp):
            left = self.value(expression.left, scope, setting, depth + 1)
            return computed(expression.op, left, self.value(expression.right, scope, setting, depth + 1))
        if isinstance(expression, ast.JoinedStr):
            return self.joined(expression, scope, depth)
        if isinstance(expression, ast.Call):
            return self.result(expression, scope, setting, depth)
        dtype = torch_dtype(expression) if isinstance(expression, ast.Attribute) else ""
        if isinstance(expression, ast.Attribute) and not dtype:
            default = self.option(expression, scope)
            if default is not None:
                return self.value(default, self.scope(()), setting, depth + 1)
            kept = self.attribute(expression, scope)
            if kept is not None:
                value = self.value(kept[0], self.scope(kept[1]), setting, depth + 1)
                return self.changed(expression, value, scope, depth)
        return dtype or Unknown(f"{short(expression)} is known only when it runs")

    def mapping(self, expression: ast.Dict, scope: Scope, setting: str, depth: int) -> Any:
        """A dictionary display; unpacked dictionaries are merged in, unknown ones leave REST behind."""
        entries: dict[str, Node] = {}
        for key, value in zip(expression.keys, expression.values, strict=True):
            if key is None:
                inner = self.node(value, scope, setting, None, depth + 1)
                if isinstance(inner.value, dict):
                    entries.update(inner.value)
                else:
                    entries[REST] = inner
                continue
            name = self.value(key, scope, setting, depth + 1)
            if not isinstance(name, str):
                return name if isinstance(name, Unknown) else Unknown("a key of the dictionary is no text")
            entries[name] = self.node(value, scope, name, self.place(key, name), depth + 1)
        return entries

    def name(self, name: str, scope: Scope, setting: str, depth: int) -> Any:
        """The value of a variable."""
        home = scope.find(name)
        if home is None:
            return Unknown(f"{name} is assigned nowhere in this file")
        assigned = home.values[name]
        given = self.argument(name, home, depth) if name in home.parameters else None
        if given is not None:
            value = given
        elif name in home.spoilt:
            value = self.spoilt(assigned, home, setting, depth, Unknown(home.spoilt[name]))
            return self.mutated(home.mutated.get(name, [])[home.spoilt_at.get(name, 0) :], home, value, depth)
        elif assigned is None:
            return Unknown(f"{name} is assigned more than once, or under a condition")
        else:
            value = self.value(assigned, home, setting, depth + 1)
        return self.mutated(home.mutated.get(name, []), home, value, depth)

    def mutated(self, later: list[tuple[str, ast.expr | None, str]], home: Scope, value: Any, depth: int) -> Any:
        """A dictionary with the keys that it gets after it is made; of one that is not known, these are known."""
        if not later or not isinstance(value, dict | Unknown):
            return value
        at = self.place(later[0][1] or ast.Constant(None, lineno=1, col_offset=0), "")
        value = dict(value) if isinstance(value, dict) else {REST: Node(value, at)}
        for key, entry, why in later:
            if entry is None:
                value.pop(key, None)
                continue
            node = self.node(entry, home, key, None, depth + 1)
            value[key] = replace(node, value=Unknown(why)) if why else node
        return value

    def attribute(self, expression: ast.Attribute, scope: Scope) -> tuple[ast.expr, Around] | None:
        """What `self.name` is set to, where its class does so once."""
        if not isinstance(expression.value, ast.Name) or expression.value.id != "self" or scope.function is None:
            return None
        owner = self.program.owners.get(scope.function)
        found = self.program.attributes.get((owner, expression.attr), []) if owner is not None else []
        return found[0] if len(found) == 1 else None

    def option(self, expression: ast.Attribute, scope: Scope) -> ast.expr | None:
        """The default of an option of the program: of `args.name`, also where `self.args` is `args`."""
        base: ast.expr = expression.value
        if isinstance(base, ast.Attribute) and (kept := self.attribute(base, scope)) is not None:
            base = kept[0]
        default = self.options.default(base.id, expression.attr) if isinstance(base, ast.Name) else None
        if default is not None:
            self.taken.append(expression.attr)
        return default

    def changed(self, expression: ast.Attribute, value: Any, scope: Scope, depth: int) -> Any:
        """A dictionary that `self.name` holds, with the keys that it gets later in the method that made it."""
        owner = self.program.owners.get(scope.function, "") if scope.function is not None else ""
        changes = self.program.changes.get((owner, expression.attr), [])
        if not isinstance(value, dict) or not changes:
            return value
        value = dict(value)
        (_, made), *_ = self.program.attributes[owner, expression.attr]
        for change in changes:
            if change.key is None:
                why = Unknown(f"self.{expression.attr} is changed in a way that is known only when it runs")
                value = {key: replace(node, value=why) for key, node in value.items()}
                value[REST] = Node(why, self.place(expression, ""))
                continue
            node = self.node(change.value, self.scope(change.around), change.key, None, depth + 1)
            sure = change.always and change.around == made
            why = Unknown(f'self.{expression.attr}["{change.key}"] is set under a condition, or in another method')
            value[change.key] = node if sure else replace(node, value=why)
        return value

    def argument(self, name: str, home: Scope, depth: int) -> Any:
        """What the calls of a function in this file pass for a parameter; None where it has none, or too many.

        Unknown where they differ.
        """
        function = home.function
        sites = self.program.sites(function) if function is not None else []
        if function is None or not sites or len(sites) > MOST_SITES or depth > DEEPEST // 2:
            return None
        values = [self.passed(name, function, home, call, self.scope(around), depth) for call, around in sites]
        plain = [Node(value, self.place(sites[0][0], "")).plain() for value in values]
        if all(one == plain[0] for one in plain):
            return values[0]
        return Unknown(f"the calls of {function.name}() in this file differ in {name}")

    def passed(self, name: str, function: Function, home: Scope, call: ast.Call, scope: Scope, depth: int) -> Any:  # noqa: PLR0911 - one for each way to pass it
        """What one call of a function passes for one of its parameters."""
        declared = function.args
        words = [one.arg for one in (*declared.posonlyargs, *declared.args)]
        is_method = function in self.program.owners
        positions = words[1:] if is_method else words
        unpacked = [one for one in call.keywords if one.arg is None]
        mappings = [self.value(one.value, scope, name, depth + 1) for one in unpacked]
        if any(isinstance(one, ast.Starred) for one in call.args):
            return Unknown(f"{function.name}() gets a starred argument")
        given = {one.arg: one.value for one in call.keywords if one.arg is not None}
        if declared.kwarg is not None and name == declared.kwarg.arg:
            taken = {*words, *(one.arg for one in declared.kwonlyargs)}
            return self.rest(call, taken, mappings, scope, depth)
        if name in given:
            return self.value(given[name], scope, name, depth + 1)
        if name in positions and positions.index(name) < len(call.args):
            return self.value(call.args[positions.index(name)], scope, name, depth + 1)
        for mapping in mappings:
            if not isinstance(mapping, dict) or REST in mapping:
                return mapping if isinstance(mapping, Unknown) else Unknown(f"{name} may be among unknown keywords")
            if name in mapping:
                return mapping[name].value
        defaults = dict(zip(reversed(words), reversed(declared.defaults), strict=False))
        defaults |= {
            one.arg: value for one, value in zip(declared.kwonlyargs, declared.kw_defaults, strict=True) if value
        }
        if name in defaults and home.above is not None:
            return self.value(defaults[name], home.above, name, depth + 1)
        return Unknown(home.spoilt.get(name, f"{name} is not passed"))

    def rest(self, call: ast.Call, taken: set[str], mappings: list[Any], scope: Scope, depth: int) -> dict[str, Node]:
        """The keywords of a call that no parameter takes: what `**kwargs` gets."""
        entries: dict[str, Node] = {}
        for mapping in mappings:
            unknown = mapping if isinstance(mapping, Unknown) else Unknown("it is not a dictionary")
            entries |= mapping if isinstance(mapping, dict) else {REST: Node(unknown, self.place(call, ""))}
        for one in call.keywords:
            if one.arg is not None:
                entries[one.arg] = self.node(one.value, scope, one.arg, self.keyword_place(one), depth + 1)
        return {key: node for key, node in entries.items() if key not in taken}

    def spoilt(self, assigned: ast.expr | None, home: Scope, setting: str, depth: int, why: Unknown) -> Any:
        """A value that changes later: of a dictionary it is known that its keys are there, and no more."""
        value = self.value(assigned, home, setting, depth + 1) if assigned is not None else why
        if assigned is None or not isinstance(value, dict):
            return why
        rest = Node(why, self.place(assigned, ""), None, "")
        return {key: replace(node, value=why) for key, node in value.items()} | {REST: rest}

    def joined(self, expression: ast.JoinedStr, scope: Scope, depth: int) -> Any:
        """An f-string of known parts."""
        text = ""
        for part in expression.values:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value, scope, "", depth + 1)
                if not isinstance(value, bool | int | float | str) or part.format_spec is not None:
                    return value if isinstance(value, Unknown) else Unknown("it is formatted when it runs")
                text += str(value)
            elif isinstance(part, ast.Constant):
                text += str(part.value)
        return text[:LONGEST_TEXT] if len(text) <= LONGEST_TEXT else Unknown("it is a very long text")

    def result(self, expression: ast.Call, scope: Scope, setting: str, depth: int) -> Any:
        """`dict(a=1)`, `json.dumps({...})`, `os.environ.get("X", default)` and the like."""
        function = ast.unparse(expression.func) if isinstance(expression.func, ast.Name | ast.Attribute) else ""
        if function == "dict" and len(expression.args) <= 1:
            entries: dict[str, Node] = {}
            for argument in expression.args:
                inner = self.value(argument, scope, setting, depth + 1)
                if not isinstance(inner, dict):
                    return Unknown("dict(...) of something that is not a literal")
                entries.update(inner)
            for keyword in expression.keywords:
                if keyword.arg is None:
                    more = self.node(keyword.value, scope, setting, None, depth + 1)
                    entries.update(more.value if isinstance(more.value, dict) else {REST: more})
                else:
                    where = self.keyword_place(keyword)
                    entries[keyword.arg] = self.node(keyword.value, scope, keyword.arg, where, depth + 1)
            return entries
        if function in {"int", "float", "str", "bool"} and len(expression.args) == 1 and not expression.keywords:
            return converted(function, self.value(expression.args[0], scope, setting, depth + 1))
        if function in {"os.environ.get", "os.getenv", "environ.get", "getenv"} and expression.args:
            variable = self.value(expression.args[0], scope, setting, depth + 1)
            return Unknown(f"the environment variable {variable} decides")
        returned = self.returned(expression.func, scope)
        if returned is not None:
            return self.value(returned[0], self.scope(returned[1]), setting, depth + 1)
        return Unknown(f"{short(expression)} is known only when it runs")

    def returned(self, function: ast.expr, scope: Scope) -> tuple[ast.expr, Around] | None:
        """What a function of this file returns, where it does so in one place."""
        is_own = isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "self"
        name = function.id if isinstance(function, ast.Name) else function.attr if is_own else ""  # type: ignore[attr-defined]
        found = self.program.functions.get(name, [])
        if len(found) != 1 or name in self.names:
            return None
        defined, around = found[0]
        returns = [one.value for one in ast.walk(defined) if isinstance(one, ast.Return) and one.value is not None]
        return (returns[0], (*around, defined)) if len(returns) == 1 else None


def _asked(node: ast.expr, names: frozenset[str], subclasses: dict[str, str], program: Program) -> str:
    """The name that was asked for, if the expression is one, under whatever name it was imported."""
    if isinstance(node, ast.Attribute):
        return node.attr if node.attr in names else ""
    if not isinstance(node, ast.Name):
        return ""
    imported = program.imports.get(node.id, node.id).rpartition(".")[2]
    return imported if imported in names else subclasses.get(node.id, "")


def _more(mapping: Node) -> str:
    left = mapping.value.get(REST)
    return left.value.reason if left is not None and isinstance(left.value, Unknown) else ""


__all__ = ["Call", "UnreadablePython", "calls", "displays", "parse", "span"]
