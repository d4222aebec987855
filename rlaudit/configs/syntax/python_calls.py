"""Calls in Python source, with what they are passed as far as the text tells."""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlaudit.configs.syntax.node import REST, Node, Unknown, rest
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.python_blocks import just_assigned
from rlaudit.configs.syntax.python_program import MOST_WRAPPERS, Program
from rlaudit.configs.syntax.python_scopes import Scope
from rlaudit.configs.syntax.python_values import NOTHING_GIVEN, PythonValues
from rlaudit.configs.syntax.unreadable import UnreadableText

MOST_CALLS = 300


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a name that was asked for.

    name: as asked for, whatever module it is reached through. arguments: keywords, those of a literal `**kwargs`
    included. positional: in order. place: of the whole call. open: why further keywords may be passed (`**kwargs` that
    the file does not tell); "" where it is complete. function: the function it stands in, "" at module level. origin:
    where the name was imported from (`vllm.LLM`), "" where the file does not import it. own: arguments that a subclass
    in this file takes itself. over_http: whether it is a request to a server's route that ends in the call. options:
    arguments that are taken at the default of an option of the program, with the option. owner: the class whose method
    it stands in. is_actor: whether it is run
    in an actor of Ray, as the file itself says. in_thread: the same of a thread that the file starts.
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
    owner: str = ""
    is_actor: bool = False
    in_thread: bool = False


def calls(text: str, path: str, names: Collection[str], given: Mapping[str, Any] = NOTHING_GIVEN) -> tuple[Call, ...]:
    """Every call of one of `names`, in order of the file. given: options of its command line. Raises UnreadableText.

    A subclass of a name counts as the name, and so does `ray.remote(...)(Name).remote(...)` and `Name.remote(...)`, and
    a variable to which the file assigns such classes alone.
    """
    finder = _Finder(PythonValues(text, path, frozenset(names), given), frozenset(names))
    return tuple(sorted(finder.calls(), key=lambda call: call.place.start))


class _Finder:
    def __init__(self, values: PythonValues, names: frozenset[str]) -> None:
        self.values, self.names, self.program = values, names, values.program
        self.subclasses = self._subclasses()

    def calls(self) -> Iterator[Call]:
        """All calls, scope by scope."""
        wanted = [
            (call, functions, found) for call, functions in self.program.calls if (found := self._called(call.func))
        ]
        if len(wanted) > MOST_CALLS:
            raise UnreadableText(f"more than {MOST_CALLS} engines or samplers", wanted[MOST_CALLS][0].lineno)
        for call, functions, found in wanted:
            made = self._call(call, found, self.values.scope(functions))
            yield replace(made, in_thread=self.program.in_thread(functions))

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

    def _asked(self, node: ast.expr) -> str:
        """The name that was asked for, if the expression is one."""
        return _asked(node, self.names, self.subclasses, self.program)

    def _called(self, function: ast.expr) -> ast.expr | None:
        """The expression that a call's function stands for, through `ray.remote(...)(Name).options(...).remote`."""
        if self._asked(function) or not (isinstance(function, ast.Attribute) and function.attr == "remote"):
            return function if self._asked(function) else None
        inner: ast.expr = function.value
        for _ in range(MOST_WRAPPERS):
            if isinstance(inner, ast.Call):
                wrapped = [argument for argument in inner.args if self._asked(argument)]
                if wrapped:
                    return wrapped[0]
                inner = inner.func
            elif isinstance(inner, ast.Attribute) and not self._asked(inner):
                inner = inner.value
            else:
                break
        return inner if self._asked(inner) else None

    def _call(self, node: ast.Call, named: ast.expr, scope: Scope) -> Call:
        """One call. named: the expression that its function stands for."""
        name = self._asked(named)
        arguments: dict[str, Node] = {}
        options: dict[str, str] = {}
        open_reason = ""
        for keyword in node.keywords:
            self.values.taken.clear()
            if keyword.arg is not None:
                where = self.values.text.keyword_place(keyword)
                arguments[keyword.arg] = self.values.node(keyword.value, scope, keyword.arg, where, 0)
                options |= dict.fromkeys(self.values.taken and [keyword.arg], " and ".join(self.values.taken))
                continue
            mapping = self.values.node(keyword.value, scope, name, None, 0)
            if isinstance(mapping.value, Unknown) and isinstance(keyword.value, ast.Name):
                assigned = just_assigned(scope.function or self.values.tree, keyword.value)
                if assigned is not None:
                    mapping = self.values.node(assigned, scope, name, None, 0)
                    between = [one for one in scope.mutated.get(keyword.value.id, []) if one[1] is not None
                               and assigned.lineno <= one[1].lineno <= keyword.value.lineno]  # fmt: skip
                    mapping = replace(mapping, value=self.values.mutated(between, scope, mapping.value, 0))
            if isinstance(mapping.value, dict):
                arguments = {**mapping.value, **arguments}
                options |= dict.fromkeys(self.values.taken and mapping.value, " and ".join(self.values.taken))
                open_reason = open_reason or rest(mapping)
            else:
                reason = mapping.value.reason if isinstance(mapping.value, Unknown) else "it is not a dictionary"
                open_reason = open_reason or f"**{ast.unparse(keyword.value)[:60]}: {reason}"
        arguments.pop(REST, None)
        positional = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                open_reason = open_reason or "a starred argument"
            else:
                positional.append(self.values.node(argument, scope, name, None, 0))
        origin, own = self.program.origin(named), self._own(named)
        place = self.values.text.place(node, name)
        owner = self.program.owners.get(scope.function, "") if scope.function is not None else ""
        is_actor = named is not node.func or self.program.is_actor(owner)
        found = Call(name, arguments, tuple(positional), place, open_reason, scope.name, origin, own)
        return replace(found, options=options, owner=owner, is_actor=is_actor)

    def _own(self, named: ast.expr) -> frozenset[str]:
        """The keywords that the constructor of a subclass takes for itself."""
        defined = self.program.classes.get(named.id) if isinstance(named, ast.Name) else None
        made = [one for one in defined.body if getattr(one, "name", "") == "__init__"] if defined is not None else []
        if not made or not isinstance(made[0], ast.FunctionDef):
            return frozenset()
        return frozenset(one.arg for one in (*made[0].args.args[1:], *made[0].args.kwonlyargs))


def _asked(node: ast.expr, names: frozenset[str], subclasses: dict[str, str], program: Program) -> str:
    """The name that was asked for, if the expression is one, under whatever name it was imported."""
    if isinstance(node, ast.Attribute):
        return node.attr if node.attr in names else ""
    if not isinstance(node, ast.Name):
        return ""
    imported = program.imports.get(node.id, node.id).rpartition(".")[2]
    return imported if imported in names else subclasses.get(node.id, "") or _by_alias(node.id, names, program)


def _by_alias(name: str, names: frozenset[str], program: Program) -> str:
    """The last class that an alias stands for, which by custom is the usual one; "" where one was not asked for."""
    spelt = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")
             for one in program.aliases.get(name, ())]  # fmt: skip
    meant = [program.imports.get(one, one).rpartition(".")[2] for one in spelt]
    return meant[-1] if meant and all(one in names for one in meant) else ""
