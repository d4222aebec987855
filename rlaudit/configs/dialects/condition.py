"""Conditions of a dialect: `release >= 0.6.0 and not (@mode == sync or actor.strategy is set)`.

They are three-valued. A side that is not known makes the whole unknown, unless the other side decides it.

    REFERENCE                 what it refers to is neither missing nor null, false, 0 or an empty text
    REFERENCE is set          it is written and not null;  `is not set` is the opposite
    REFERENCE is written      the key is there, with any value, also null or one that is not known
    REFERENCE == WORD         and != < > <= >=; a missing value equals null and is neither larger nor smaller
    REFERENCE in (A, B)       one of several words
    not A, A and B, A or B, (A)
    true, false               always, never: as YAML spells them, alone

A reference is a path of the config (`@key` below the layout's root, `a.b` below the file's, `/vllm` if the key has the
name of one of these words), a setting found so far (`$engine.dtype`, `$sampling.temperature`, `$trainer.dtype`),
`release`, `framework` (its own release if `release` is another one's), `vllm`, `layout`, `call`, `command` and
`program` (whether it is one), `missing` (whether an inherited file is not beside the config), `code:FILE` (whether the
copy of the framework around the config has the file; null without a copy), or the name of one of the dialect's own
conditions. A word is read as YAML reads it; one that begins with `@`, `$` or `/` is a reference. `vllm` also compares
to a milestone of vllm/milestones.py by its name: `vllm >= PAUSE_TAKES_A_MODE`.
"""

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

import yaml
from packaging.version import Version

from rlaudit.unknown import Unknown

Truth = bool | Unknown
_TOKEN = re.compile(r"\s*(==|!=|>=|<=|[()<>,]|\"[^\"]*\"|[^\s()=!<>,]+)")
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<": operator.lt, ">": operator.gt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_SIGNS = set(_OPERATORS)
_NOTHING: tuple[Any, ...] = (None, False, 0, "", [], {})


class Scope(Protocol):
    """What a condition is evaluated in."""

    def value(self, reference: str) -> Any:
        """Return what a reference refers to: plain data, None if it is missing, Unknown if it is not known."""

    def compare(self, reference: str, sign: str, other: Any) -> Truth:
        """Return how a reference compares to a word."""

    def is_written(self, reference: str) -> bool:
        """Return whether the config has a key."""


Condition = Callable[[Scope], Truth]


def both(left: Truth, right: Truth) -> Truth:
    """Return the three-valued `and`."""
    if left is False or right is False:
        return False
    return left if isinstance(left, Unknown) else right


def either(left: Truth, right: Truth) -> Truth:
    """Return the three-valued `or`."""
    if left is True or right is True:
        return True
    return left if isinstance(left, Unknown) else right


def negated(truth: Truth) -> Truth:
    """Return the three-valued `not`."""
    return truth if isinstance(truth, Unknown) else not truth


def is_on(value: Any) -> Truth:
    """Return whether a value is neither missing nor null, false, 0 or empty."""
    return value if isinstance(value, Unknown) else value not in _NOTHING


def compared(value: Any, sign: str, other: Any) -> Truth:
    """Return how two values or releases compare."""
    for side in (value, other):
        if isinstance(side, Unknown):
            return side
    if sign in {"==", "!="}:
        return (value == other and isinstance(value, bool) == isinstance(other, bool)) is (sign == "==")
    are_ordered = any(isinstance(value, kind) and isinstance(other, kind) for kind in (int | float, Version))
    return are_ordered and _OPERATORS[sign](value, other)


@lru_cache(maxsize=2048)
def condition(text: str) -> Condition:
    """Return the condition that a text spells. Raises ValueError, with the place, if it spells none."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s+", "", text) and '"' not in text:
        raise ValueError(f"{text!r} is no condition")
    parser = _Parser(text, tokens)
    parsed = parser.alternatives()
    parser.end()
    return parsed


class _Parser:
    """Recursive descent over the tokens of one condition."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text, self._tokens, self._at = text, tokens, 0

    def end(self) -> None:
        if self._next() is not None:
            raise self._error(f"nothing more after {' '.join(self._tokens[: self._at])}")

    def alternatives(self) -> Condition:
        left = self._conjunction()
        while self._take("or"):
            left = _or(left, self._conjunction())
        return left

    def _conjunction(self) -> Condition:
        left = self._single()
        while self._take("and"):
            left = _and(left, self._single())
        return left

    def _single(self) -> Condition:
        if self._take("not"):
            inner = self._single()
            return lambda scope: negated(inner(scope))
        if self._take("("):
            inner = self.alternatives()
            self._need(")")
            return inner
        reference = self._word()
        if self._take("is"):
            return self._presence(reference)
        if self._take("in"):
            return self._membership(reference)
        sign = self._next()
        if sign not in _SIGNS:
            return lambda scope: is_on(scope.value(reference))
        self._at += 1
        word = self._word()
        return lambda scope: scope.compare(reference, str(sign), literal(word, scope))

    def _presence(self, reference: str) -> Condition:
        wanted = not self._take("not")
        if self._take("written"):
            return lambda scope: scope.is_written(reference) is wanted
        self._need("set")
        sign = "!=" if wanted else "=="
        return lambda scope: scope.compare(reference, sign, None)

    def _membership(self, reference: str) -> Condition:
        self._need("(")
        words = [self._word()]
        while self._take(","):
            words.append(self._word())
        self._need(")")

        def among(scope: Scope) -> Truth:
            truth: Truth = False
            for word in words:
                truth = either(truth, scope.compare(reference, "==", literal(word, scope)))
            return truth

        return among

    def _next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, token: str) -> bool:
        taken = self._next() == token
        self._at += taken
        return taken

    def _need(self, token: str) -> None:
        if not self._take(token):
            raise self._error(f"{token} expected, found {self._next() or 'the end'}")

    def _word(self) -> str:
        word = self._next()
        if word is None or word in _SIGNS or word in {"(", ")", ",", "and", "or", "is", "in"}:
            raise self._error(f"a name or a value expected, found {word or 'the end'}")
        self._at += 1
        return word

    def _error(self, why: str) -> ValueError:
        return ValueError(f"{self._text!r} is no condition: {why}")


def literal(word: str, scope: Scope) -> Any:
    """Return a word as YAML reads it; one that begins with `@`, `$` or `/` is a reference."""
    if word[0] in "@$/":
        return scope.value(word.removeprefix("/"))
    return _constant(word)


# Called for each config of each file, and PyYAML takes a tenth of a millisecond.
@lru_cache(maxsize=2048)
def _constant(word: str) -> Any:
    return yaml.safe_load(word)


def _or(left: Condition, right: Condition) -> Condition:
    return lambda scope: either(left(scope), right(scope))


def _and(left: Condition, right: Condition) -> Condition:
    return lambda scope: both(left(scope), right(scope))
