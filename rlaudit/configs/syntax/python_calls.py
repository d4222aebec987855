"""Calls and dictionaries in Python source, with what they hold as far as the text tells."""

import ast
from collections.abc import Collection
from dataclasses import dataclass

from rlaudit.configs.syntax.node import REST, Node, rest
from rlaudit.configs.syntax.python_values import PythonValues
from rlaudit.configs.syntax.python_walk import At, nodes_of
from rlaudit.configs.syntax.unreadable import UnreadableText
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

MOST_CALLS = 300
# `ray.remote(num_gpus=1)(LLM).options(name="a").remote(...)` is the longest way to write one.
_MOST_WRAPPERS = 8
_ACTOR = "ray.remote"


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
    # Why further keywords may be passed (`**kwargs` that the file does not tell); "" if it is complete.
    open: str = ""
    # The function that it stands in, "" at module level.
    function: str = ""
    # Where the name was imported from (`vllm.LLM`), "" if the file does not import it.
    origin: str = ""
    # Arguments that a subclass in this file takes itself.
    own: frozenset[str] = frozenset()
    # Whether it is a request to a server's route that ends in the call.
    over_http: bool = False
    # Whether it is run in an actor of Ray, as the file itself says.
    is_actor: bool = False


def calls(text: str, path: str, names: Collection[str]) -> tuple[Call, ...]:
    """Return every call of one of `names`, in order of the file. Raises UnreadableText.

    A subclass of a name counts as the name, and so does `ray.remote(...)(Name).remote(...)` and `Name.remote(...)`.
    """
    finder = _Finder(PythonValues(text, path), frozenset(names))
    return tuple(sorted(finder.calls(), key=lambda call: call.place.start))


def dictionaries(text: str, path: str, key: str) -> tuple[Node, ...]:
    """Return every dictionary display that has a key, the outermost first. Raises UnreadableText."""
    values = PythonValues(text, path)
    found = (
        (at.node, at) for at in nodes_of(values.tree) if isinstance(at.node, ast.Dict)
        and any(isinstance(one, ast.Constant) and one.value == key for one in at.node.keys)
    )  # fmt: skip
    return tuple(values.node(node, at) for node, at in found)


class _Finder:
    def __init__(self, values: PythonValues, names: frozenset[str]) -> None:
        self.values, self.names = values, names
        self.nodes = nodes_of(values.tree)
        self.classes = {at.node.name: at.node for at in self.nodes if isinstance(at.node, ast.ClassDef)}

    def calls(self) -> list[Call]:
        """Return all calls."""
        wanted = [(at.node, at, found) for at in self.nodes
                  if isinstance(at.node, ast.Call) and (found := self._called(at.node.func)) is not None]  # fmt: skip
        if len(wanted) > MOST_CALLS:
            raise UnreadableText(f"more than {MOST_CALLS} engines or samplers", wanted[MOST_CALLS][0].lineno)
        return [self._call(node, found, at) for node, at, found in wanted]

    def _base(self, node: ast.expr) -> ast.expr:
        """Return the class that a class of this file is based on, through as many of them as there are."""
        for _ in range(_MOST_WRAPPERS):
            defined = self.classes.get(node.id) if isinstance(node, ast.Name) else None
            if defined is None or not defined.bases:
                break
            node = defined.bases[0]
        return node

    def _asked(self, node: ast.expr) -> str:
        """Return the requested name that an expression stands for, under any imported name; "" if it is none."""
        node = self._base(node)
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if isinstance(node, ast.Name):
            name = self.values.names.imports.get(name, name).rpartition(".")[2]
        return name if name in self.names else ""

    def _called(self, function: ast.expr) -> ast.expr | None:
        """The expression that a call's function stands for, through `ray.remote(...)(Name).options(...).remote`."""
        if self._asked(function):
            return function
        if not (isinstance(function, ast.Attribute) and function.attr == "remote"):
            return None
        inner: ast.expr = function.value
        for _ in range(_MOST_WRAPPERS):
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

    def _call(self, node: ast.Call, named: ast.expr, at: At) -> Call:
        """Return one call. named: the expression that its function stands for."""
        name = self._asked(named)
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
            self._own(named),
            is_actor=named is not node.func or self._is_actor(at.owner),
        )

    def _own(self, named: ast.expr) -> frozenset[str]:
        """Return the keywords that the constructor of a subclass takes for itself."""
        defined = self.classes.get(named.id) if isinstance(named, ast.Name) else None
        made = [one for one in defined.body if getattr(one, "name", "") == "__init__"] if defined is not None else []
        if not made or not isinstance(made[0], ast.FunctionDef):
            return frozenset()
        return frozenset(one.arg for one in (*made[0].args.args[1:], *made[0].args.kwonlyargs))

    def _is_actor(self, owner: str) -> bool:
        """Return whether Ray runs a class: `@ray.remote`, or `ray.remote(...)(Name)`."""
        cls = self.classes.get(owner)
        if cls is None:
            return False
        made = (at.node for at in self.nodes if isinstance(at.node, ast.Call))
        wrappers = (call.func for call in made if any(getattr(one, "id", "") == owner for one in call.args))
        marks = (*cls.decorator_list, *wrappers)
        return any(ast.unparse(one).startswith(_ACTOR) for one in marks)
