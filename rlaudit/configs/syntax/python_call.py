"""One call in Python source, as far as the file tells its arguments."""

from dataclasses import dataclass

from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.place import Place


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a name that was asked for.

    name: as asked for, whatever module it is reached through. arguments: keywords, those of a literal `**kwargs`
    included. positional: in order. place: of the whole call. open: why further keywords may be passed (`**kwargs` that
    the file does not tell); "" where it is complete. function: the function it stands in, "" at module level.
    """

    name: str
    arguments: dict[str, Node]
    positional: tuple[Node, ...]
    place: Place
    open: str = ""
    function: str = ""
