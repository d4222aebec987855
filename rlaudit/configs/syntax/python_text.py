"""Calls in Python source, with literals, module constants and literal dictionaries resolved.

The file is parsed and never run. A name counts as known where it is assigned exactly once in its scope, to something
that is known; what a loop, a condition, an argument parser or another module decides is Unknown with the reason.
"""

import ast
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.place import Place
from rlaudit.configs.syntax.python_literals import (
    LONGEST_TEXT,
    computed,
    converted,
    literal_texts,
    negated,
    short,
    torch_dtype,
)
from rlaudit.configs.syntax.python_scopes import Function, Scope, scope_of

MOST_CALLS = 300
DEEPEST = 60
MOST_VALUES = 20_000
MOST_WRAPPERS = 8
_LINE_END = re.compile(r"\r\n|\r|\n")


MOST_CHARACTERS = 400_000


class UnreadablePython(ValueError):
    """Not Python 3, or nested too deeply. `line` is 1-based, 0 where unknown."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def parse(text: str) -> ast.Module:
    """The syntax tree. Raises UnreadablePython."""
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
    the file does not tell); "" where it is complete. function: the function it stands in, "" at module level.
    """

    name: str
    arguments: dict[str, Node]
    positional: tuple[Node, ...]
    place: Place
    open: str = ""
    function: str = ""


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


def span(node: ast.expr, text: str) -> tuple[int, int]:
    """Start and end of an expression in characters."""
    place = _Reader(text, "", ast.Module([], []), frozenset()).place(node, "")
    return place.start, place.end


class _Reader:
    def __init__(self, text: str, path: str, tree: ast.Module, names: frozenset[str]) -> None:
        self.tree, self.names, self.count = tree, names, 0
        self.index = LineIndex(text, path)
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
        self.subclasses: dict[str, str] = {}
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
        found: list[tuple[ast.Call, tuple[Function, ...]]] = []
        for node, functions in self.nodes():
            if isinstance(node, ast.ClassDef):
                parents = [asked for parent in node.bases if (asked := self.asked(parent))]
                self.subclasses.update({node.name: parents[0]} if parents else {})
            elif isinstance(node, ast.Call):
                found.append((node, functions))
        wanted = [(call, functions, name) for call, functions in found if (name := self.called(call.func))]
        if len(wanted) > MOST_CALLS:
            raise UnreadablePython(f"more than {MOST_CALLS} engines or samplers", wanted[MOST_CALLS][0].lineno)
        for call, functions, name in wanted:
            yield self.call(call, name, self.scope(functions))

    def scope(self, functions: tuple[Function, ...]) -> Scope:
        """The scope of the innermost function."""
        key = functions[-1] if functions else self.tree
        if key not in self.scopes:
            above = self.scope(functions[:-1]) if functions else None
            self.scopes[key] = scope_of(key, getattr(key, "name", ""), above)
        return self.scopes[key]

    def asked(self, node: ast.expr) -> str:
        """The name that was asked for, if the expression is one."""
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        return name if name in self.names else self.subclasses.get(name, "")

    def called(self, function: ast.expr) -> str:
        """What a call's function stands for, through `ray.remote(...)(Name).options(...).remote`."""
        name = self.asked(function)
        if name or not (isinstance(function, ast.Attribute) and function.attr == "remote"):
            return name
        inner: ast.expr = function.value
        for _ in range(MOST_WRAPPERS):
            if isinstance(inner, ast.Call):
                wrapped = [self.asked(argument) for argument in inner.args if self.asked(argument)]
                if wrapped:
                    return wrapped[0]
                inner = inner.func
            elif isinstance(inner, ast.Attribute) and not self.asked(inner):
                inner = inner.value
            else:
                break
        return self.asked(inner)

    def call(self, node: ast.Call, name: str, scope: Scope) -> Call:
        """One call."""
        arguments: dict[str, Node] = {}
        open_reason = ""
        for keyword in node.keywords:
            if keyword.arg is not None:
                where = self.keyword_place(keyword)
                arguments[keyword.arg] = self.node(keyword.value, scope, keyword.arg, where, 0)
                continue
            mapping = self.node(keyword.value, scope, name, None, 0)
            if isinstance(mapping.value, dict):
                arguments = {**mapping.value, **arguments}
                open_reason = open_reason or _more(mapping)
            else:
                reason = mapping.value.reason if isinstance(mapping.value, Unknown) else "it is not a dictionary"
                open_reason = open_reason or f"**{ast.unparse(keyword.value)[:60]}: {reason}"
        arguments.pop("**", None)
        positional = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                open_reason = open_reason or "a starred argument"
            else:
                positional.append(self.node(argument, scope, name, None, 0))
        return Call(name, arguments, tuple(positional), self.place(node, name), open_reason, scope.name)

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
        return dtype or Unknown(f"{short(expression)} is known only when it runs")

    def mapping(self, expression: ast.Dict, scope: Scope, setting: str, depth: int) -> Any:
        """A dictionary display; unpacked dictionaries are merged in, unknown ones leave `**` behind."""
        entries: dict[str, Node] = {}
        for key, value in zip(expression.keys, expression.values, strict=True):
            if key is None:
                inner = self.node(value, scope, setting, None, depth + 1)
                if isinstance(inner.value, dict):
                    entries.update(inner.value)
                else:
                    entries["**"] = inner
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
        if name in home.spoilt:
            return self.spoilt(assigned, home, setting, depth, Unknown(home.spoilt[name]))
        if assigned is None:
            return Unknown(f"{name} is assigned more than once, or under a condition")
        value = self.value(assigned, home, setting, depth + 1)
        if isinstance(value, dict) and name in home.mutated:
            value = dict(value)
            for key, entry, why in home.mutated[name]:
                node = self.node(entry, home, key, None, depth + 1)
                value[key] = replace(node, value=Unknown(why)) if why else node
        return value

    def spoilt(self, assigned: ast.expr | None, home: Scope, setting: str, depth: int, why: Unknown) -> Any:
        """A value that changes later: of a dictionary it is known that its keys are there, and no more."""
        value = self.value(assigned, home, setting, depth + 1) if assigned is not None else why
        if assigned is None or not isinstance(value, dict):
            return why
        rest = Node(why, self.place(assigned, ""), None, "")
        return {key: replace(node, value=why) for key, node in value.items()} | {"**": rest}

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
                    entries.update(more.value if isinstance(more.value, dict) else {"**": more})
                else:
                    where = self.keyword_place(keyword)
                    entries[keyword.arg] = self.node(keyword.value, scope, keyword.arg, where, depth + 1)
            return entries
        if function in {"int", "float", "str", "bool"} and len(expression.args) == 1 and not expression.keywords:
            return converted(function, self.value(expression.args[0], scope, setting, depth + 1))
        if function in {"os.environ.get", "os.getenv", "environ.get", "getenv"} and expression.args:
            variable = self.value(expression.args[0], scope, setting, depth + 1)
            return Unknown(f"the environment variable {variable} decides")
        return Unknown(f"{short(expression)} is known only when it runs")


def _more(mapping: Node) -> str:
    left = mapping.value.get("**")
    return left.value.reason if left is not None and isinstance(left.value, Unknown) else ""


__all__ = ["Call", "UnreadablePython", "calls", "displays", "parse", "span"]
