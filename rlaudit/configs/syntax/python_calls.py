"""Calls and dictionaries in Python source, with their values as far as the text contains them."""

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass

from rlaudit.configs.syntax.node import REST, Node, rest
from rlaudit.configs.syntax.python_values import PythonValues
from rlaudit.configs.syntax.python_walk import At, nodes_of
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

MOST_CALLS = 300
# The longest way to write a call is `ray.remote(num_gpus=1)(LLM).options(name="a").remote(...)`.
_MOST_WRAPPERS = 8
_ACTOR = "ray.remote"
# Tests of what a library's release is, or what it takes.
_OF_A_RELEASE = re.compile(r"__version__|vllm_?version|version\(|signature|fields|TypeError", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a name that was requested."""

    # As it was requested; the file may reach it through any module.
    name: str
    # Keywords, those of a literal `**kwargs` included.
    arguments: dict[str, Node]
    positional: tuple[Node, ...]
    # Of the whole call.
    place: Place
    # Why further keywords may be passed (`**kwargs` of unknown content); "" if it is complete.
    open: str = ""
    # The function around it, "" at module level.
    function: str = ""
    # Where the name was imported from (`vllm.LLM`), "" if the file does not import it.
    origin: str = ""
    # Arguments of the constructor of a subclass in this file.
    own: frozenset[str] = frozenset()
    # Whether it is a request to a server's route that ends in the call.
    over_http: bool = False
    # Whether it is run in an actor of Ray, according to the file.
    is_actor: bool = False
    # The tests of the branches around it, what their names are bound to, and what the `try`s around it catch.
    guards: str = ""

    def may_leave_out(self, argument: str) -> bool:
        """Return whether a test of the library's release, or of the argument, may keep the call from running."""
        return bool(_OF_A_RELEASE.search(self.guards)) or f"'{argument}'" in self.guards


def calls(text: str, path: str, names: Collection[str]) -> tuple[Call, ...]:
    """Return every call of one of `names`, in order of the file. Raises UnreadableText.

    A subclass of a name counts as the name, and so does `ray.remote(...)(Name).remote(...)` and `Name.remote(...)`.
    """
    finder = _Finder(PythonValues(text, path), frozenset(names))
    return tuple(sorted(finder.calls(), key=lambda call: call.place.start))


def dictionaries(text: str, path: str, key: str) -> tuple[Node, ...]:
    """Return every dictionary display that has a key, the outermost first. Raises UnreadableText."""
    values = PythonValues(text, path)
    return tuple(
        values.node(at.node, at) for at in nodes_of(values.tree) if isinstance(at.node, ast.Dict)
        and any(isinstance(name, ast.Constant) and name.value == key for name in at.node.keys)
    )  # fmt: skip


class _Finder:
    def __init__(self, values: PythonValues, names: frozenset[str]) -> None:
        self.values, self.names = values, names
        self.nodes = nodes_of(values.tree)
        self.classes = {at.node.name: at.node for at in self.nodes if isinstance(at.node, ast.ClassDef)}

    def calls(self) -> list[Call]:
        """Return all calls."""
        wanted = [(at.node, at, named) for at in self.nodes
                  if isinstance(at.node, ast.Call) and (named := self._called(at.node.func)) is not None]  # fmt: skip
        if len(wanted) > MOST_CALLS:
            raise UnreadableText(f"more than {MOST_CALLS} engines or samplers", wanted[MOST_CALLS][0].lineno)
        return [self._call(node, named, at) for node, at, named in wanted]

    def _base(self, node: ast.expr) -> ast.expr:
        """Return the first base class that is not defined in this file."""
        for _ in range(_MOST_WRAPPERS):
            defined = self.classes.get(node.id) if isinstance(node, ast.Name) else None
            if defined is None or not defined.bases:
                break
            node = defined.bases[0]
        return node

    def _requested(self, node: ast.expr) -> str:
        """Return the requested name that an expression refers to, under any imported name; "" if it is none."""
        node = self._base(node)
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if isinstance(node, ast.Name):
            name = self.values.names.imports.get(name, name).rpartition(".")[2]
        return name if name in self.names else ""

    def _called(self, function: ast.expr) -> ast.expr | None:
        """Return the expression of the name that is called, also by `ray.remote(...)(Name).options(...).remote`."""
        if self._requested(function):
            return function
        if not (isinstance(function, ast.Attribute) and function.attr == "remote"):
            return None
        inner: ast.expr = function.value
        for _ in range(_MOST_WRAPPERS):
            if isinstance(inner, ast.Call):
                wrapped = [argument for argument in inner.args if self._requested(argument)]
                if wrapped:
                    return wrapped[0]
                inner = inner.func
            elif isinstance(inner, ast.Attribute) and not self._requested(inner):
                inner = inner.value
            else:
                break
        return inner if self._requested(inner) else None

    def _call(self, node: ast.Call, named: ast.expr, at: At) -> Call:
        """Return one call. named: the expression of its name."""
        name = self._requested(named)
        arguments: dict[str, Node] = {}
        open_reason = ""
        for keyword in node.keywords:
            if keyword.arg is not None:
                where = self.values.text.keyword_place(keyword)
                arguments[keyword.arg] = self.values.node(keyword.value, at, keyword.arg, where)
                continue
            mapping = self.values.node(keyword.value, at, name)
            if isinstance(mapping.value, dict):
                arguments = {**mapping.value, **arguments}
                open_reason = open_reason or rest(mapping)
            else:
                reason = mapping.value.reason if isinstance(mapping.value, Unknown) else "it is not a dictionary"
                open_reason = open_reason or f"**{ast.unparse(keyword.value)[:60]}: {reason}"
        arguments.pop(REST, None)
        plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
        if len(plain) < len(node.args):
            open_reason = open_reason or "a starred argument"
        return Call(
            name,
            arguments,
            tuple(self.values.node(argument, at, name) for argument in plain),
            self.values.text.place(node, name),
            open_reason,
            at.functions[-1].name if at.functions else "",
            self.values.names.origin(self._base(named)),
            self._constructor_arguments(named),
            is_actor=named is not node.func or self._is_actor(at.owner),
            guards=self._guards(at),
        )

    def _guards(self, at: At) -> str:
        texts: list[str] = []
        for branch, part in at.branches:
            if isinstance(branch, ast.Try) and part == "body":
                texts += [ast.unparse(handler.type) for handler in branch.handlers if handler.type is not None]
            elif isinstance(branch, ast.If):
                names = [node.id for node in ast.walk(branch.test) if isinstance(node, ast.Name)]
                bindings = [self.values.names.find(name, at.functions) for name in names]
                values = [binding[0].value for binding in bindings if binding and binding[0].value is not None]
                texts += [ast.unparse(expression) for expression in (branch.test, *values)]
        return " ".join(texts)

    def _constructor_arguments(self, named: ast.expr) -> frozenset[str]:
        """Return the arguments of a subclass's constructor."""
        defined = self.classes.get(named.id) if isinstance(named, ast.Name) else None
        body = defined.body if defined is not None else []
        constructor = next((line for line in body if getattr(line, "name", "") == "__init__"), None)
        if not isinstance(constructor, ast.FunctionDef):
            return frozenset()
        return frozenset(argument.arg for argument in (*constructor.args.args[1:], *constructor.args.kwonlyargs))

    def _is_actor(self, owner: str) -> bool:
        """Return whether Ray runs a class: `@ray.remote`, or `ray.remote(...)(Name)`."""
        cls = self.classes.get(owner)
        if cls is None:
            return False
        all_calls = (at.node for at in self.nodes if isinstance(at.node, ast.Call))
        wrappers = (call.func for call in all_calls if owner in (getattr(node, "id", "") for node in call.args))
        marks = (*cls.decorator_list, *wrappers)
        return any(ast.unparse(mark).startswith(_ACTOR) for mark in marks)
