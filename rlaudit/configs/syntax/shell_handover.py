"""What a command hands to a script inside it: exports, its own prefixes, and those of `env`, `srun --export`, `-e`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlaudit.configs.syntax.line_index import ABSOLUTE, LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_fields import Field, Piece
from rlaudit.configs.syntax.shell_variables import Variables


def handed_over(variables: Variables, index: LineIndex, given: Mapping[str, Node]) -> Variables:
    """What a script inside a command sees. index: of the script around it. given: variables of the command alone."""
    names = [name for name in variables.exports if name in variables.known]
    inside = Variables(
        {name: [_absolute(one, index) for one in variables.known[name]] for name in names},
        exports=set(variables.exports),
    )
    for name, node in given.items():
        start, end = node.place.start + ABSOLUTE, node.place.end + ABSOLUTE
        value = (
            Piece("", start, node.value.reason) if isinstance(node.value, Unknown) else Piece(str(node.value), start)
        )
        inside.set(name, [Field((value,), start, end, node.text)])
        inside.export(name)
    return inside


def _absolute(one: Field, index: LineIndex) -> Field:
    """A value with its places in the file instead of in the script that set it."""
    pieces = tuple(replace(piece, start=index.offset(piece.start) + ABSOLUTE) for piece in one.pieces)
    last = index.offset(max(one.start, one.end - 1)) + (one.end > one.start)
    return Field(pieces, index.offset(one.start) + ABSOLUTE, last + ABSOLUTE, one.raw)


def passed(words: Sequence[Node]) -> dict[str, Node]:
    """Variables that `env A=1`, `docker run -e A=1` and `srun --export=ALL,A=1` set."""
    found = {}
    for at, word in enumerate(words):
        text = word.value if isinstance(word.value, str) else ""
        before = words[at - 1].value if at else ""
        for joined in ("--env=", "-e="):
            text = text.removeprefix(joined)
        parts = text.removeprefix("--export=").split(",") if text.startswith("--export=") else [text]
        if before in {"-e", "--env"} or words[0].value == "env" or parts != [word.value] or text != word.value:
            for part in parts:
                name, equals, value = part.partition("=")
                if equals and name.isidentifier():
                    found[name] = replace(word, value=value, text=value)
    return found
