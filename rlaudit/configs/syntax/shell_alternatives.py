"""A shell variable after a block that may not have run: what it holds in any case, and what only a condition adds.

Options and overrides under a condition stay words of the command, so that a reader finds each by its name: their values
are unknown, and the reason quotes what they would be. A switch is itself unknown, with its spelling as its text. Any
other word that a condition adds may be anything.
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
    name: str, before: list[Field] | None, left: Sequence[list[Field]], array: bool, line: int
) -> list[Field]:
    """Return the fields of a variable after a block.

    before: its value at the beginning; None if it is not set. left: what each branch that changed it leaves. array:
    whether it is one. line: where the block begins.
    """
    at = next((value[0].start for value in (*left, before or []) if value), 0)
    if not array and any(map(_is_long, (before or [], *left))):
        return [Field.unknown(f"{name} is set under a condition in line {line}, to more than {MOST_WORDS} words", at)]
    # `ARGS=""` in front of `ARGS=(--x 1)` is how scripts say that there are none yet.
    held = [word for word in _words(before or [], array) if word.text or word.why]
    given = [_words(value, array) for value in left]
    grown = all(_begins(words, held) for words in given)
    if grown and len(left) == 1 and all(word.why for word in given[0][len(held) :]):
        return left[0]  # An inner block has left it open already.
    kept = list(before or []) if grown else []
    options = _options([words[len(held) :] for words in given] if grown else [held, *given])
    if options is not None:
        added = list(_possible(options, line))
    elif grown and held:
        added = [Field.unknown(f"{name} is extended under a condition in line {line}", at)]
    else:
        added = [Field.unknown(f"{name} is set{_to_one_of(left)} under a condition in line {line}", at)]
    if array:
        return [*kept, *added]
    pieces = [piece for one in kept for piece in one.pieces]
    for one in added:
        pieces += [Piece(" ", one.start)] * bool(pieces) + list(one.pieces)
    return [Field(tuple(pieces), at, at, "")]


def _is_long(value: list[Field]) -> bool:
    """Return whether cutting it into words at the end of every block would take too long."""
    return sum(1 + piece.text.count(" ") for one in value for piece in one.pieces) > MOST_WORDS


def _begins(words: list[Field], held: list[Field]) -> bool:
    first = words[: len(held)]
    return first == held or _texts(first) == _texts(held)


def _words(value: list[Field], array: bool) -> list[Field]:
    if array:
        return value
    return [where_written(pieces, None) for one in value for pieces in split(one.pieces)]


def _texts(words: Sequence[Field]) -> list[str]:
    return [one.text for one in words]


def _options(alternatives: Sequence[list[Field]]) -> Mapping[str, list[list[Field]]] | None:
    """Return the options of all alternatives: for each time that one is given, its own word and those of its value.
    None if an alternative holds anything else, or if there are no options.
    """
    found: dict[str, list[list[Field]]] = {}
    if len(alternatives) > MOST_ALTERNATIVES or sum(map(len, alternatives)) > MOST_WORDS:
        return None
    for words in alternatives:
        value: list[Field] | None = None
        for word in words:
            assigned = _ASSIGNED.match(word.text)
            # `-e KEY=1`, and not `--a --b=1`.
            is_value = value is not None and len(value) == 1 and not word.text.startswith("-")
            if assigned is not None and not is_value:
                found.setdefault(assigned.group(1), []).append([word, word])
                value = None
            elif _OPTION.fullmatch(word.text):
                value = [word]
                found.setdefault(word.text, []).append(value)
            elif value is not None and word.text:
                value.append(word)
            else:
                return None
    return found or None


def _possible(options: Mapping[str, list[list[Field]]], line: int) -> Iterator[Field]:
    """Yield a word for each option, unknown from the sign behind its name on."""
    for name, given in options.items():
        first = given[0]
        values = list(dict.fromkeys(_value(name, words) for words in given))
        if values == [""]:
            why = f"{name} stands under a condition in line {line}"
            yield Field((Piece(name, first[0].start, why),), first[0].start, first[0].end, name)
            continue
        why = f"{name} is {_one_of(values)} under a condition in line {line}"
        spelt = f"{name}={values[0]}"
        yield Field((Piece(spelt, first[0].start, why),), first[0].start, first[-1].end, spelt)


def _value(name: str, words: list[Field]) -> str:
    """Return the value of an option as it is written: behind its sign, or the words after it."""
    head, *rest = words
    return head.text[len(name) + 1 :] if rest[:1] == [head] else " ".join(_texts(rest))


def _to_one_of(left: Sequence[list[Field]]) -> str:
    """` to 2 or 4`, where each of the values is one word that the file tells."""
    told = all(len(value) == 1 and value[0].text.strip() and not value[0].why for value in left)
    return f" to {_one_of(list(dict.fromkeys(value[0].text for value in left)))}" if told and left else ""


def _one_of(values: Sequence[str]) -> str:
    shown = [value if len(value) <= LONGEST_QUOTED else f"{value[:LONGEST_QUOTED]}..." for value in values]
    *others, last = [value.replace("\n", " ") or "nothing" for value in shown]
    return f"{', '.join(others)} or {last}" if others else last
