"""An answer of a server, checked by type: text, numbers and nesting may be anything.

A server of completions returns the alternatives of a position as a mapping, one of chats as a list. vLLM writes a
logprob of minus infinity as -9999 (serving_completion.py of 0.8.5 to 0.33.0), others as null.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CUT = -9000.0
MOST_NATS = 1e6
# vLLM's own name of a token if `return_tokens_as_token_ids` was given.
ID_PREFIX = "token_id:"
MOST_DIGITS = 9


class NotAnAnswer(ValueError):
    """What a server returned is no answer of the kind that was requested."""


@dataclass(frozen=True)
class Position:
    """One token of a completion. Logprobs in nats."""

    token: str
    logprob: float
    # The alternatives that have a logprob, and those that the server cut.
    top: Mapping[str, float]
    cut: frozenset[str]

    @property
    def names(self) -> Iterator[str]:
        """The names of the token and of every alternative."""
        yield from (self.token, *self.top, *self.cut)

    def ranked(self, most: int) -> list[tuple[str, float]]:
        """Return the likeliest alternatives, the best first. vLLM lists the drawn token as well, wherever it ranks."""
        return sorted(self.top.items(), key=lambda pair: -pair[1])[:most]


@dataclass(frozen=True)
class Answer:
    """The choices of one request, each with its positions."""

    choices: tuple[tuple[Position, ...], ...]
    # Logprob of each token of the prompt, None for the first; empty if none was requested.
    prompt: tuple[float | None, ...] = ()

    @property
    def next(self) -> Position:
        """The first token of the first choice. Raises NotAnAnswer if there is none."""
        for position in self.drawn():
            return position
        raise NotAnAnswer("it has no token")

    def drawn(self, place: int = 0) -> Iterator[Position]:
        """Yield the position of each choice that is long enough."""
        return (positions[place] for positions in self.choices if len(positions) > place)


def id_of(token: str) -> int | None:
    """Return the id that a server names a token by; None if it names it by its text."""
    digits = token.removeprefix(ID_PREFIX)
    return int(digits) if digits != token and digits.isdecimal() and len(digits) <= MOST_DIGITS else None


def of_completion(document: Any) -> Answer:
    """Return the answer of `/v1/completions`. Raises NotAnAnswer."""
    choices = _list(document, "choices")
    return Answer(tuple(tuple(_columns(choice)) for choice in choices), _prompt(choices[0]))


def of_chat(document: Any) -> Answer:
    """Return the answer of `/v1/chat/completions`. Raises NotAnAnswer."""
    return Answer(
        tuple(
            tuple(map(_chat_position, _list(_mapping(choice, "logprobs"), "content")))
            for choice in _list(document, "choices")
        )
    )


def _columns(choice: Any) -> Iterator[Position]:
    columns = _mapping(choice, "logprobs")
    tokens, logprobs = _list(columns, "tokens"), _list(columns, "token_logprobs")
    tops = columns.get("top_logprobs") or [{}] * len(tokens)
    if not isinstance(tops, list) or not len(tokens) == len(logprobs) == len(tops):
        raise NotAnAnswer("tokens, token_logprobs and top_logprobs are not of one length")
    for token, logprob, top in zip(tokens, logprobs, tops, strict=True):
        yield _position(token, logprob, top if isinstance(top, Mapping) else {})


def _chat_position(entry: Any) -> Position:
    # Texts of several tokens may be the same (halves of a character): none of them is known by its text.
    values: dict[str, list[Any]] = {}
    for other in _list(entry, "top_logprobs", may_lack=True):
        name, value = _of(other, "token"), _logprob(_of(other, "logprob"))
        if isinstance(name, str):
            values.setdefault(name, []).append(value)
    single = {name: value for name, (value, *others) in values.items() if not others}
    return _position(_of(entry, "token"), _of(entry, "logprob"), single)


def _position(token: Any, logprob: Any, top: Mapping[str, Any]) -> Position:
    if not isinstance(token, str):
        raise NotAnAnswer("a token is no text")
    logprobs = {name: _logprob(value) for name, value in top.items()}
    cut = frozenset(name for name, value in logprobs.items() if value <= CUT)
    possible = {name: value for name, value in logprobs.items() if value > CUT} if cut else logprobs
    return Position(token, _logprob(logprob), possible, cut)


def _logprob(value: Any) -> float:
    if value is None:
        return -math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotAnAnswer("a logprob is no number")
    # JSON has whole numbers that no float holds.
    if not -MOST_NATS < value < MOST_NATS:
        raise NotAnAnswer("a logprob is no number of nats")
    return -math.inf if value <= CUT else float(value)


def _prompt(choice: Any) -> tuple[float | None, ...]:
    """Return vLLM's own `prompt_logprobs`: for each place a mapping from ids, the token of the prompt first."""
    places = choice.get("prompt_logprobs") or []
    if not isinstance(places, list):
        raise NotAnAnswer("prompt_logprobs is no list")
    return tuple(
        _logprob(_of(next(iter(place.values())), "logprob")) if isinstance(place, Mapping) and place else None
        for place in places
    )


def _of(value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise NotAnAnswer(f"what should have a {key} is no object")
    return value.get(key)


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    value_of_key = _of(value, key)
    if not isinstance(value_of_key, Mapping):
        raise NotAnAnswer(f"it has no {key}")
    return value_of_key


def _list(value: Any, key: str, may_lack: bool = False) -> list[Any]:
    value_of_key = _of(value, key)
    if may_lack and value_of_key is None:
        return []
    if not isinstance(value_of_key, list) or not (value_of_key or may_lack):
        raise NotAnAnswer(f"it has no {key}")
    return value_of_key
