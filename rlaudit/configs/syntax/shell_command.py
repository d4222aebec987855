"""One command of a shell script, as far as it is known from the script."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlaudit.configs.syntax.node import Node
from rlaudit.settings.place import Place


@dataclass(frozen=True, eq=False)
class Command:
    """One simple command."""

    # Its name and arguments; Unknown if not in the file.
    words: tuple[Node, ...]
    # Exports and prefixes in force, by name.
    variables: Mapping[str, Node]
    place: Place
    # Sentences on the variables that the environment may set and that were taken at the default in the script.
    assumed: tuple[str, ...] = ()
    # The whole file.
    text: str = field(default="", repr=False)
    # Whether it is inside a quoted word or a value of another file.
    nested: bool = False


LONGEST_SHOWN = 80
_PRINTING = {"echo", "printf"}
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")


def acted_on(words: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the words that a command acts on: none if it prints them. The arguments of Python after `-`, or after
    the program of `-c`, are left out: they are data.
    """
    name = words[0].value
    if name in _PRINTING:
        return ()
    if not (isinstance(name, str) and _PYTHON.fullmatch(name)):
        return words
    for at, word in enumerate(words[1:], 1):
        if word.value in {"-", "-c"}:
            return words[: at + (1 if word.value == "-" else 2)]
        if word.value == "-m" or not str(word.value).startswith("-"):
            break
    return words


class TakenDefault(str):
    """The sentence for a variable, or an argument of the script, that was taken at its default. variable: which."""

    variable: str

    def further(self, words: str) -> "TakenDefault":
        """Return the sentence with words after it."""
        return _sentence_about(self.variable, f"{self}{words}")


class FurtherWords(str):
    """The sentence for a word that may hold further options. is_array: an array, which a script fills by itself."""

    is_array: bool


def further_words(text: str, what: str) -> FurtherWords:
    """Return the sentence for a word whose value is not known."""
    made = FurtherWords(f"{shortened(text)} may hold further {what}")
    made.is_array = "[@]" in text or "[*]" in text
    return made


def _sentence_about(variable: str, sentence: str) -> TakenDefault:
    """Return the sentence about a variable."""
    made = TakenDefault(sentence)
    made.variable = variable
    return made


def taken_at_default(name: str, value: str) -> TakenDefault:
    """Return the sentence for a variable, or an argument of the script, that was taken at its default."""
    value = shortened(value)
    who = f"argument {name}" if name.isdigit() else name
    as_what = f"at its default {value}" if value.strip() else "as empty, its default"
    return _sentence_about(who, f"{who} is taken {as_what}")


def shortened(text: str) -> str:
    """Return a word of a command, for a sentence."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def passed(words: Sequence[Node]) -> dict[str, Node]:
    """Return the variables that `env A=1`, `docker run -e A=1` and `srun --export=ALL,A=1` set; Unknown if the value is
    not written.
    """
    variables = {}
    by_env = _of_env(words)
    for at, word in enumerate(words):
        written = word.value if isinstance(word.value, str) else word.text
        assignment = written
        before = words[at - 1].value if at else ""
        for joined in ("--env=", "-e="):
            assignment = assignment.removeprefix(joined)
        parts = assignment.removeprefix("--export=").split(",") if assignment.startswith("--export=") else [assignment]
        if before in ("-e", "--env") or at in by_env or parts != [written] or assignment != written:
            for part in parts:
                name, equals, value = part.partition("=")
                if equals and name.isidentifier():
                    assigned = value if isinstance(word.value, str) else word.value
                    variables[name] = replace(word, value=assigned, text=value)
    return variables


def _of_env(words: Sequence[Node]) -> set[int]:
    """Return the positions of the words `env A=1 B=2`, which may follow the name of a function of the script."""
    positions: set[int] = set()
    inside = False
    for at, word in enumerate(words):
        option = words[at - 1].text if at else ""
        belongs = "=" in word.text or word.text.startswith("-") or option in ("-u", "--unset")
        inside = word.text == "env" or (inside and belongs)
        if inside:
            positions.add(at)
    return positions
