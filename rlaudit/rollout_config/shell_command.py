"""One command of a shell script, as far as the script tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlaudit.rollout_config.line_index import LineIndex
from rlaudit.rollout_config.node import Node
from rlaudit.rollout_config.place import Place


@dataclass(frozen=True, eq=False)
class Command:
    """One simple command.

    words: the command's name and arguments; Unknown where the file does not tell. variables: exports and prefixes in
    force, by name. heredoc: its here-document; unknown expansions stay as written. inside: where the characters of the
    here-document stand in the file. target: the file that its output goes to. assumed: variables that the environment
    may set and that were taken at the default written in the script. text: the whole file. nested: whether it stands
    inside a quoted word, a here-document or a value of another file.
    """

    words: tuple[Node, ...]
    variables: Mapping[str, Node]
    place: Place
    heredoc: Node | None = None
    inside: LineIndex | None = None
    target: str = ""
    assumed: tuple[str, ...] = ()
    text: str = field(default="", repr=False)
    nested: bool = False
