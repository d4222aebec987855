"""What may be asked of a framework's source. The answer is a value with the line that decides, or None: not found.

A question names files, relative to the checkout; the first one that is there and has something to say answers.
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlaudit.configs.framework_source.bindings import calls_in, defaults_in, literal, nodes_in, place
from rlaudit.configs.framework_source.checkout import Checkout, shown
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown


@dataclass(frozen=True)
class Answer:
    """What the source says. where: `file:line`."""

    value: Any
    where: str


Question = Callable[[Checkout], Answer | None]


@lru_cache(maxsize=256)
def ask(question: Question, checkout: Checkout) -> Answer | None:
    """The answer, looked up once for all configs of a checkout."""
    return question(checkout)


def calls(names: Collection[str], *files: str) -> Question:
    """Whether a function or method of one of the names is called; false where the package has none of the words."""

    def answer(checkout: Checkout) -> Answer | None:
        found = _found(checkout, files, lambda source: calls_in(source, names))
        return found or _without(checkout, names, files, False)

    return answer


def divides_by(name: str, *files: str) -> Question:
    """Whether something is divided by a variable, attribute or key of that name: `logits / x`, `logits.div_(cfg["x"])`.

    Where no line of the package does, nothing is known: it may be divided under another name, or not at all. Nor is it
    where every line that does stands behind a test on vLLM, as on its engine being V0: what runs decides.
    """
    anywhere = rf"/=?\s*\(?[\w.]*{name}|div_?\([^)]*{name}"

    def always(source: Source) -> tuple[ast.AST, ...]:
        tested = _behind_tests_on_vllm(source)
        return tuple(one for one in _divisions(source, name) if one not in tested)

    def answer(checkout: Checkout) -> Answer | None:
        found = _found(checkout, files, always)
        if found is None and (sometimes := _found(checkout, files, lambda source: tuple(_divisions(source, name)))):
            return Answer(None, sometimes.where)
        read = next(_sources(checkout, files), None) if found is None else None
        return found if read is None or checkout.says(anywhere) else Answer(None, shown(read.path))

    return answer


def mentions(functions: Collection[str], text: str, *files: str) -> Question:
    """Whether the code of the first of some functions that is there, its docstring aside, has a string with a text."""

    def answer(checkout: Checkout) -> Answer | None:
        for source in _sources(checkout, files):
            for node in nodes_in(source):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in functions:
                    said = any(text in value for line in node.body[bool(ast.get_docstring(node)) :]
                               for one in ast.walk(line) if isinstance(one, ast.Constant)
                               if isinstance(value := one.value, str))  # fmt: skip
                    return Answer(said, place(source, node))
        return None

    return answer


def keywords_of(name: str, *files: str) -> Question:
    """The names of the keyword arguments with which a method is called first; None where the package never says it."""

    def answer(checkout: Checkout) -> Answer | None:
        for source, call in _first_call(checkout, files, name):
            return Answer([keyword.arg for keyword in call.keywords if keyword.arg], place(source, call))
        return _without(checkout, {name}, files, None)

    return answer


def argument(name: str, keyword: str, *files: str) -> Question:
    """The constant that a method is called with first, for one keyword; None where the package never says it."""

    def answer(checkout: Checkout) -> Answer | None:
        for source, call in _first_call(checkout, files, name):
            given = [one.value for one in call.keywords if one.arg == keyword]
            if given and not isinstance(value := literal(given[0]), Unknown):
                return Answer(value, place(source, call))
        return _without(checkout, {name}, files, None)

    return answer


def uses(name: str, *files: str) -> Question:
    """Whether the code has a variable, a keyword or a key of that name; false where the package has no such word."""

    def look(source: Source) -> tuple[ast.AST, ...]:
        return tuple(
            node for node in nodes_in(source)
            if name in (getattr(node, "id", None), getattr(node, "arg", None), getattr(node, "value", None))
        )  # fmt: skip

    return lambda checkout: _found(checkout, files, look) or _without(checkout, {name}, files, False)


def reads_below(parent: str, key: str, *files: str) -> Question:
    """Whether a key is read of what is called `parent`: `parent.key`, `x["parent"]["key"]`, `parent.get("key")`."""

    def look(source: Source) -> tuple[ast.AST, ...]:
        return tuple(node for node in nodes_in(source) if (owner := _owner(node, key)) is not None
                     and any(parent in (getattr(part, "id", ""), getattr(part, "attr", ""), getattr(part, "value", ""))
                             for part in ast.walk(owner)))  # fmt: skip

    return lambda checkout: _found(checkout, files, look)


def falls_through(name: str, *files: str) -> Question:
    """Whether a false under that name counts as nothing: it stands in an `or`."""

    def look(source: Source) -> bool:
        return any(isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
                   and any(getattr(part, "attr", "") == name for part in ast.walk(node))
                   for node in nodes_in(source))  # fmt: skip

    def answer(checkout: Checkout) -> Answer | None:
        read = next(_sources(checkout, files), None)
        return Answer(look(read), shown(read.path)) if read is not None else None

    return answer


def stored(key: str, *files: str) -> Question:
    """The constant that a key of a mapping is set to: `kwargs["key"] = True`."""

    def answer(checkout: Checkout) -> Answer | None:
        for source in _sources(checkout, files):
            for node in nodes_in(source):
                if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
                    value = literal(node.value)
                    if literal(target.slice) == key and not isinstance(value, Unknown):
                        return Answer(value, place(source, node))
        return None

    return answer


def called(function: str, key: str, *files: str) -> Question:
    """Whether a key of a mapping is set to what a function gives: `kwargs["key"] = function()`."""

    def look(source: Source) -> tuple[ast.AST, ...]:
        return tuple(node for node in calls_in(source, {function}) if node in _values_of(source, key))

    return lambda checkout: _found(checkout, files, look)


def lacks(pattern: str, *files: str) -> Question:
    """False where one of the files is there and no file of the package has text that a regular expression finds."""

    def answer(checkout: Checkout) -> Answer | None:
        read = next(_sources(checkout, files), None)
        return None if read is None or checkout.says(pattern) else Answer(False, shown(read.path))

    return answer


def else_unknown(question: Question, *files: str) -> Question:
    """The answer of another question; where it finds none in a source that is there, the fact is taken back."""

    def answer(checkout: Checkout) -> Answer | None:
        read = next(_sources(checkout, files), None)
        return question(checkout) or (Answer(None, shown(read.path)) if read is not None else None)

    return answer


def in_words(question: Question, words: Mapping[Any, Any]) -> Question:
    """The answer of another question, in a trainer fact's own words; none for any other answer. None as a word takes
    the fact back.
    """

    def answer(checkout: Checkout) -> Answer | None:
        found = question(checkout)
        return None if found is None or found.value not in words else Answer(words[found.value], found.where)

    return answer


def default(option: str, *files: str, owner: str = "") -> Question:
    """The default of an option: of a class's field, or of a parser's argument."""

    def answer(checkout: Checkout) -> Answer | None:
        for source in _sources(checkout, files):
            bound = defaults_in(source, owner).get(option)
            if bound is not None and not isinstance(bound.constant, Unknown):
                return Answer(bound.constant, bound.where)
        return None

    return answer


def _found(checkout: Checkout, files: tuple[str, ...], look: Callable[[Source], tuple[ast.AST, ...]]) -> Answer | None:
    """True with the first place in any of the files. No answer where there is none: it may be done elsewhere."""
    for source in _sources(checkout, files):
        seen = look(source)
        if seen:
            return Answer(True, place(source, seen[0]))
    return None


def _without(checkout: Checkout, names: Collection[str], files: tuple[str, ...], value: Any) -> Answer | None:
    """What it means that no file of the package has any of the words, where one of the files is there."""
    read = next(_sources(checkout, files), None)
    if read is None or checkout.says(rf"\b(?:{'|'.join(sorted(names))})\b"):
        return None
    return Answer(value, shown(read.path))


def _sources(checkout: Checkout, files: tuple[str, ...]) -> Iterator[Source]:
    yield from (source for file in files if (source := checkout.file(file)) is not None)


def _first_call(checkout: Checkout, files: tuple[str, ...], name: str) -> Iterator[tuple[Source, ast.Call]]:
    for source in _sources(checkout, files):
        for call in calls_in(source, {name})[:1]:
            yield source, call


def _divisions(source: Source, name: str) -> Iterator[ast.AST]:
    for node in nodes_in(source):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            divisor = node.right if isinstance(node, ast.BinOp) else node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"div", "div_"}:
            divisor = node.args[0] if node.args else node.func
        else:
            continue
        if any(_says(part) == name for part in ast.walk(divisor)):
            yield node


def _behind_tests_on_vllm(source: Source) -> set[ast.AST]:
    """Everything in branches whose test names vLLM."""
    return {
        inner
        for node in nodes_in(source)
        if isinstance(node, ast.If) and any("vllm" in _says(one).lower() for one in ast.walk(node.test))
        for branch in (*node.body, *node.orelse)
        for inner in ast.walk(branch)
    }


def _says(node: ast.AST) -> str:
    """The name of a variable or attribute, or a text: the key of a mapping."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return getattr(node, "attr", "") or getattr(node, "id", "")


def _values_of(source: Source, key: str) -> Iterator[ast.expr]:
    """What a key of a mapping is set to."""
    for node in nodes_in(source):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and literal(target.slice) == key:
                    yield node.value


def _owner(node: ast.AST, key: str) -> ast.expr | None:
    """What a node reads a key of."""
    if isinstance(node, ast.Attribute) and node.attr == key:
        return node.value
    if isinstance(node, ast.Subscript) and literal(node.slice) == key:
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return node.func.value if node.args and literal(node.args[0]) == key else None
    return None
