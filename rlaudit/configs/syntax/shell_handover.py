"""What a command hands to a script inside it: exports and its own prefixes, at their places in the file."""

from collections.abc import Mapping
from dataclasses import replace

from rlaudit.configs.syntax.line_index import ABSOLUTE, LineIndex
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_fields import Field, Piece
from rlaudit.configs.syntax.shell_variables import Variables


def handed_over(variables: Variables, index: LineIndex, given: Mapping[str, Node], everything: bool) -> Variables:
    """What a script inside a command sees. index: of the script around it. given: variables of the command alone.
    everything: whether the same shell reads it, which knows what is not exported too.
    """
    names = [name for name in variables.known if everything or name in variables.exports]
    inside = Variables(
        {name: [_absolute(one, index) for one in variables.known[name]] for name in names},
        arrays=variables.arrays & set(names) if everything else set(),
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
