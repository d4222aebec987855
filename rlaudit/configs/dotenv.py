"""Environment files: `NAME=value` a line, as compose's `env_file:` and `.env`, and `docker run --env-file` read them.

Source: the Compose specification, "env_file" and "Interpolation".
"""

import re
from collections.abc import Iterator, Mapping

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node

_LINE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t]*\r?$", re.M)
_QUOTED = re.compile(r"""(["'])(.*?)\1""")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*$")


def variables_of(source: Source) -> dict[str, Node]:
    """Return the variables that an environment file sets, the last of a name; text, with its place in that file."""
    index = LineIndex(source.text, source.path)
    found = {}
    for line in _LINE.finditer(source.text):
        quoted = _QUOTED.match(line[2])
        value = quoted[2] if quoted is not None else _COMMENT.sub("", line[2])
        place = index.place(line.start(2), line.end(2), line[1])
        found[line[1]] = Node(value, place, place, line[2])
    return found


def beside(source: Source) -> Mapping[str, Node]:
    """Return the variables of the `.env` beside a file, which compose fills in."""
    found = source.neighbour(".env") if "$" in source.text else None
    return variables_of(found) if found is not None else {}


def named_by(source: Source, node: Node) -> Iterator[dict[str, Node]]:
    """Yield the variables of each file that `env_file:` of a service names, as far as they are there."""
    listed = node.get("env_file")
    for one in () if listed is None else listed.elements() or (listed,):
        path = one.get("path") or one
        if isinstance(path.value, str):
            file = source.neighbour(path.value)
            if file is not None:
                yield variables_of(file)
