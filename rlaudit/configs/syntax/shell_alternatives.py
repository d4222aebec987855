"""A shell variable after a block that may not have run: what it holds in any case, and what only a condition adds.

Options and overrides under a condition stay words of the command, so that a reader finds each by its name: their values
are unknown, and the reason quotes the possible ones. A switch is itself unknown, with its spelling as its text. For any
other word that a condition adds, the whole addition is unknown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from rlaudit.configs.syntax.shell_parts import Field, Piece, split, where_written

MOST_ALTERNATIVES = 8
MOST_WORDS = 400
LONGEST_QUOTED = 60
_ASSIGNED = re.compile(r"(--?[A-Za-z][\w.-]*|\+{0,2}[A-Za-z_][\w./@:-]*)=")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")


def after_block(
    name: str, before: list[Field] | None, values_after: Sequence[list[Field]], array: bool, line: int
) -> list[Field]:
    """Return the fields of a variable after a block.

    before: its value at the beginning; None if it is not set. values_after: its value after each branch that changed
    it. array: whether it is an array. line: where the block begins.
    """
    at = next((value[0].start for value in (*values_after, before or []) if value), 0)
    if not array and any(map(_is_long, (before or [], *values_after))):
        return [Field.unknown(f"{name} is set under a condition in line {line}, to more than {MOST_WORDS} words", at)]
    # Scripts write `ARGS=""` in front of `ARGS=(--x 1)`.
    words_before = [word for word in _words(before or [], array) if word.text or word.why]
    words_after = [_words(value, array) for value in values_after]
    grown = all(_texts(words[: len(words_before)]) == _texts(words_before) for words in words_after)
    if grown and len(values_after) == 1 and all(word.why for word in words_after[0][len(words_before) :]):
        return values_after[0]  # An inner block has already made it unknown.
    unchanged = list(before or []) if grown else []
    options = _options([words[len(words_before) :] for words in words_after] if grown else [words_before, *words_after])
    if options is not None:
        added = list(_possible(options, line))
    elif grown and words_before:
        added = [Field.unknown(f"{name} is extended under a condition in line {line}", at)]
    else:
        added = [Field.unknown(f"{name} is set{_to_one_of(values_after)} under a condition in line {line}", at)]
    if array:
        return [*unchanged, *added]
    pieces = [piece for field in unchanged for piece in field.pieces]
    for field in added:
        pieces += [Piece(" ", field.start)] * bool(pieces) + list(field.pieces)
    return [Field(tuple(pieces), at, at, "")]


def _is_long(value: list[Field]) -> bool:
    """Return whether splitting it at the end of every block would take too long."""
    return sum(1 + piece.text.count(" ") for field in value for piece in field.pieces) > MOST_WORDS


def _words(value: list[Field], array: bool) -> list[Field]:
    if array:
        return value
    return [where_written(pieces, None) for field in value for pieces in split(field.pieces)]


def _texts(words: Sequence[Field]) -> list[str]:
    return [word.text for word in words]


def _options(alternatives: Sequence[list[Field]]) -> Mapping[str, list[list[Field]]] | None:
    """Return the options of all alternatives by name: for each occurrence, its word and those of its value. None if
    there are no options, or if an alternative has anything else.
    """
    options: dict[str, list[list[Field]]] = {}
    if len(alternatives) > MOST_ALTERNATIVES or sum(map(len, alternatives)) > MOST_WORDS:
        return None
    for words in alternatives:
        value: list[Field] | None = None
        for word in words:
            assigned = _ASSIGNED.match(word.text)
            # `-e KEY=1`, and not `--a --b=1`.
            is_value = value is not None and len(value) == 1 and not word.text.startswith("-")
            if assigned is not None and not is_value:
                options.setdefault(assigned.group(1), []).append([word, word])
                value = None
            elif _OPTION.fullmatch(word.text):
                value = [word]
                options.setdefault(word.text, []).append(value)
            elif value is not None and word.text:
                value.append(word)
            else:
                return None
    return options or None


def _possible(options: Mapping[str, list[list[Field]]], line: int) -> Iterator[Field]:
    """Yield a word for each option, whose value is unknown."""
    for name, occurrences in options.items():
        first = occurrences[0]
        values = list(dict.fromkeys(_value(name, words) for words in occurrences))
        if values == [""]:
            why = f"{name} stands under a condition in line {line}"
            yield Field((Piece(name, first[0].start, why),), first[0].start, first[0].end, name)
            continue
        why = f"{name} is {_one_of(values)} under a condition in line {line}"
        text = f"{name}={values[0]}"
        yield Field((Piece(text, first[0].start, why),), first[0].start, first[-1].end, text)


def _value(name: str, words: list[Field]) -> str:
    """Return the value of an option as it is written: behind its `=`, or the words after it."""
    head, *value = words
    return head.text[len(name) + 1 :] if value[:1] == [head] else " ".join(_texts(value))


def _to_one_of(values: Sequence[list[Field]]) -> str:
    """Return ` to 2 or 4` if each of the values is one known word, else ""."""
    known = all(len(value) == 1 and value[0].text.strip() and not value[0].why for value in values)
    return f" to {_one_of(list(dict.fromkeys(value[0].text for value in values)))}" if known and values else ""


def _one_of(values: Sequence[str]) -> str:
    shown = [value if len(value) <= LONGEST_QUOTED else f"{value[:LONGEST_QUOTED]}..." for value in values]
    *others, last = [value.replace("\n", " ") or "nothing" for value in shown]
    return f"{', '.join(others)} or {last}" if others else last
