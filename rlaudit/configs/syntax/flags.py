"""The options of a command: argparse-like tails, and Hydra's `key=value` overrides."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from rlaudit.configs.syntax.node import Node
from rlaudit.files.parse_json import parse_json
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

_NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")
_OVERRIDE = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w./@:-]*)(?:=(.*))?", re.DOTALL)
_SHOWN = re.compile(r"-[^=]*=|--?[A-Za-z][\w.-]*$")
_INTEGER = re.compile(r"[-+]?\d{1,40}")
_REAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?")
_LEADING_ZERO = re.compile(r"[-+]?0\d+")
_GROUPED = re.compile(r"[-+]?\d+(_\d+)+(\.\d*)?")
_NO_NUMBER = re.compile(r"[-+]?(inf|nan)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\()\[\]{}:=, \t])")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}
LARGEST_JSON = 20_000


@dataclass(frozen=True)
class Flag:
    """One option of a command, or a word that belongs to none."""

    # Without dashes in front, with underscores and dots (`vllm.enable_prefix_caching`); "" for a positional, or for an
    # expansion that may hold any option.
    name: str
    # None for a bare flag. Text for an argparse tail, typed for an override.
    value: Node | None
    # Of the flag itself.
    place: Place
    # Further words after the first value.
    more: tuple[Node, ...] = ()
    # Whether the value is in the same word (`--a=b`).
    joined: bool = False
    # `+`, `++` or `~` of an override.
    operator: str = ""
    # Whether the flag itself is under a condition; its value is then Unknown with that reason.
    doubtful: bool = False


def flags(
    words: Sequence[Node], start: int = 0, switch: Callable[[str], bool] = lambda _name: False
) -> tuple[Flag, ...]:
    """Return the options in words[start:], in order. switch: whether a name never takes the next word as its value."""
    options: list[Flag] = []
    at, only_words = start, False
    while at < len(words):
        word = words[at]
        at += 1
        if word.value == "--" and not only_words:
            only_words = True
        elif only_words or not _is_option(word):
            options.append(Flag("", word, word.place))
        else:
            flag = _option(word)
            if not flag.joined and not flag.doubtful and not switch(flag.name):
                first = at
                while at < len(words) and not _is_option(words[at]) and words[at].value != "--":
                    at += 1
                values = tuple(words[first:at])
                if values:
                    flag = replace(flag, value=values[0], more=values[1:])
            options.append(flag)
    return tuple(options)


# Called several times for the same command.
@lru_cache(maxsize=64)
def overrides(words: tuple[Node, ...]) -> tuple[Flag, ...]:
    """Return the Hydra overrides among words: `key=value`, `+key=value`, `++key=value`, `~key`, all typed."""
    return tuple(_overrides(words))


def _overrides(words: Sequence[Node]) -> Iterator[Flag]:
    for word in words:
        if not isinstance(word.value, str):
            key = _known_key(word)
            if key:
                place = _inside(word, len(key.group()), len(word.text))
                value: Node | None = Node(word.value, place, word.place, word.text[len(key.group()) :])
                yield Flag(key.group(2), value, replace(word.place, setting=key.group(2)), (), True, key.group(1) or "")
            continue
        match = _OVERRIDE.fullmatch(word.value)
        if match is None or (match.group(3) is None and match.group(1) != "~"):
            continue
        operator, key_text, text = match.group(1) or "", match.group(2), match.group(3)
        value = None
        if text is not None:
            place = _after(word, len(word.value) - len(text), len(text))
            value = Node(typed_by_hydra(text), place, word.place, text)
        yield Flag(key_text, value, replace(word.place, setting=key_text), (), value is not None, operator)


def overrides_anything(word: Node) -> bool:
    """Return whether a word may be any override, or several: an expansion whose value is not in the file."""
    return isinstance(word.value, Unknown) and _known_key(word) is None and not _is_option(word)


_KEY_OF_UNKNOWN = re.compile(r"[\"']?(\+\+|\+|~)?([A-Za-z_][\w./@:-]*)=")


def _known_key(word: Node) -> re.Match[str] | None:
    """Return the key of `key=$VALUE`, of which only the value is unknown."""
    return _KEY_OF_UNKNOWN.match(word.text)


def typed(text: str) -> Any:
    """Return the value that a word spells: boolean, null, number, JSON or YAML-like list and mapping, else a string."""
    stripped = text.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        return stripped[1:-1]
    if stripped.lower() in _WORDS:
        return _WORDS[stripped.lower()]
    if _INTEGER.fullmatch(stripped):
        return int(stripped)
    if len(stripped) < 64 and _REAL.fullmatch(stripped):
        return float(stripped)
    if stripped[:1] in {"[", "{"} and len(stripped) < LARGEST_JSON:
        return _collection(stripped)
    return text


def typed_by_hydra(text: str) -> Any:
    """Return the value that a word spells in the grammar of Hydra's overrides, which OmegaConf's resolvers share.

    `none` is a word, and so is 007; 1_000, inf and nan are numbers; a backslash takes a sign for itself.
    Source: Hydra 1.3, OverrideLexer.g4.
    """
    stripped = text.strip()
    if stripped.lower() == "none" or _LEADING_ZERO.fullmatch(stripped):
        return stripped
    if _GROUPED.fullmatch(stripped):
        return typed(stripped.replace("_", ""))
    if _NO_NUMBER.fullmatch(stripped):
        return float(stripped)
    value = typed(text)
    if not isinstance(value, str) or "\\" not in value:
        return value
    quote = stripped[0] if value != text and stripped[0] in "'\"" else ""
    return value.replace(f"\\{quote}", quote) if quote else _ESCAPED.sub(r"\1", value)


def _collection(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        pass
    from rlaudit.configs.syntax.unreadable import UnreadableText
    from rlaudit.configs.syntax.yaml_text import parse_plain_yaml

    try:
        # Hydra writes {a:1,b:2} where YAML wants a blank after the colon.
        documents = parse_plain_yaml(re.sub(r"(?<=[\w\"']):(?=[^\s/])", ": ", text), "")
    except UnreadableText:
        return text
    return documents[0].plain() if documents else text


def _is_option(word: Node) -> bool:
    text = word.value if isinstance(word.value, str) else word.text.lstrip("\"'") if _begins_known(word) else ""
    return text.startswith("-") and text.strip("-")[:1] not in {"", "="} and not _NEGATIVE.match(text)


def _begins_known(word: Node) -> bool:
    """Return whether a word with an unknown value shows its flag: `--tensor-parallel-size=$TP`, or a switch under a
    condition.
    """
    return isinstance(word.value, Unknown) and _SHOWN.match(word.text.lstrip("\"'")) is not None


def _option(word: Node) -> Flag:
    text = word.value if isinstance(word.value, str) else word.text
    text = text if text.startswith("-") else text.strip("\"'")
    key, equals, value = text.partition("=")
    place = replace(word.place, setting=key)
    name = key.lstrip("-").replace("-", "_")
    short = re.fullmatch(r"-O(=?)(\w+)", text)
    if short:
        level = short.group(2)
        inside = _after(word, len(text) - len(level), len(level))
        return Flag("O", Node(level, inside, place, level), replace(word.place, setting="-O"), (), True)
    if not equals:
        doubt = word if isinstance(word.value, Unknown) else None
        return Flag(name, doubt, place, doubtful=doubt is not None)
    if isinstance(word.value, Unknown):
        return Flag(name, Node(word.value, place, place, value), place, (), True)
    return Flag(name, Node(value, _after(word, len(key) + 1, len(value)), place, value), place, (), True)


def _after(word: Node, skipped: int, length: int) -> Place:
    """Return the place of word.value[skipped:skipped + length]; of the whole word if quoting moves the characters."""
    begin = word.text.find(word.value) if isinstance(word.value, str) else -1
    if begin < 0 or (word.place.end - word.place.start) != len(word.text):
        # `--key='{"a": 1}'`: quotes begin after the equals sign, so everything after it is the value.
        text = word.text[skipped:]
        quoted = len(text) == length + 2 and text[:1] == text[-1:] and text[:1] in {"'", '"'}
        if not quoted or word.place.end - word.place.start != len(word.text):
            return word.place
        return _inside(word, skipped, len(word.text))
    return _inside(word, begin + skipped, begin + skipped + length)


def _inside(word: Node, first: int, last: int) -> Place:
    place = word.place
    return replace(place, column=place.column + first, start=place.start + first, end=place.start + last)
