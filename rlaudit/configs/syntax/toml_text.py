"""TOML with the place of every key and value.

`tomllib` decides whether a file is TOML. It gives no places, so a second pass walks the same text and gives every
scalar, array and table its span. Values of scalars are read by `tomllib` too.
"""

import re
from dataclasses import replace
from typing import Any

from rlaudit.configs.syntax.line_index import LineIndex
from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.unreadable import UnreadableText, refuse_depth, refuse_length
from rlaudit.settings.place import Place

MOST_CHARACTERS = 150_000
MOST_LINES = 5_000
MOST_DOTS = 40
DEEPEST = 100
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*+")
_BASIC_END = re.compile(r'(?:[^"\\\n]|\\.)*+"')
_LONG_END = re.compile(r'(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}', re.DOTALL)
_LONG_LITERAL_END = re.compile(r"(?:[^']|'{1,2}(?!'))*+'{3,5}")
_PLAIN = re.compile(r"[^,\]}#\r\n]+")


def parse_toml(text: str, path: str) -> Node:
    """Return the root table. Raises UnreadableText."""
    import tomllib

    _refuse_extremes(text)
    # tomllib turns every line end into \n first, and with it every offset.
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+)", str(error))
        raise UnreadableText(str(error), int(match.group(1)) if match else 0) from None
    except (RecursionError, ValueError) as error:
        raise UnreadableText(str(error) or "nested too deeply") from None
    walker = _Walker(text, path)
    try:
        return walker.document(data)
    except (IndexError, RecursionError, KeyError, TypeError, AttributeError) as error:  # pragma: no cover
        raise UnreadableText(f"its places cannot be told: {error}") from None


def _refuse_extremes(text: str) -> None:
    refuse_length(text, MOST_LINES, MOST_CHARACTERS)
    refuse_depth(text, DEEPEST)
    for run in re.finditer(r"[\w.\"' \t-]{200,}+", text):
        if run.group().count(".") > MOST_DOTS and "=" not in run.group():
            raise UnreadableText(f"a key of more than {MOST_DOTS} parts", text.count("\n", 0, run.start()) + 1)


class _Walker:
    """Walks text that tomllib accepted, beside the data it made of it."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.index, self.at = text, LineIndex(text, path), 0

    def document(self, data: dict[str, Any]) -> Node:
        """Return the root table."""
        root = Node({}, self.index.place(0, len(self.text), ""))
        names: tuple[str, ...] = ()
        table, values = root, data
        self.skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table, names, values = self.header(root, data)
            else:
                self.pair(table, names, values)
            self.skip()
        return root

    def header(self, root: Node, data: dict[str, Any]) -> tuple[Node, tuple[str, ...], Any]:
        """Read `[a.b]` or `[[a.b]]`. Return the table that it opens, its path and its data."""
        start = self.at
        many = self.text.startswith("[[", start)
        self.at += 2 if many else 1
        names, places = self.key(())
        self.blank()
        self.at += 2 if many else 1
        span = self.index.place(start, self.at, ".".join(names))
        node, value = root, data
        for position, name in enumerate(names):
            last = position == len(names) - 1
            child = node.value.get(name)
            value = value[name]
            if last and many:
                tables = (*(child.elements() if child else ()), Node({}, span))
                node.value[name] = Node(tables, span, places[position])
                return tables[-1], names, value[len(tables) - 1]
            if child is None:
                child = Node({}, span, places[position])
                node.value[name] = child
            elif last and not many and not child.elements():
                child = replace(child, place=span, key=places[position])
                node.value[name] = child
            if child.elements():
                value = value[len(child.elements()) - 1]
                child = child.elements()[-1]
            node = child
        return node, names, value

    def pair(self, table: Node, names: tuple[str, ...], values: Any) -> None:
        """Add `a.b = value` to a table."""
        keys, places = self.key(names)
        self.blank()
        self.at += 1
        self.blank()
        node = table
        for name, place in zip(keys[:-1], places, strict=False):
            values = values[name]
            if name not in node.value:
                node.value[name] = Node({}, place, place)
            node = node.value[name]
        setting = ".".join((*names, *keys))
        node.value[keys[-1]] = self.value(setting, places[-1], values[keys[-1]])

    def key(self, above: tuple[str, ...]) -> tuple[tuple[str, ...], list[Place]]:
        """Return a dotted key: its parts and their places."""
        import tomllib

        names: list[str] = []
        places: list[Place] = []
        while True:
            self.blank()
            start = self.at
            if self.text[start] in "\"'":
                self.string()
                names.append(next(iter(tomllib.loads(f"{self.text[start : self.at]} = 1"))))
            else:
                match = _BARE.match(self.text, start)
                self.at = match.end() if match else start + 1
                names.append(self.text[start : self.at])
            places.append(self.index.place(start, self.at, ".".join((*above, *names))))
            self.blank()
            if self.at >= len(self.text) or self.text[self.at] != ".":
                return tuple(names), places
            self.at += 1

    def value(self, setting: str, key: Place | None, data: Any) -> Node:
        """Return one value, whose data is known."""
        start = self.at
        character = self.text[start]
        if character == "[":
            elements = self.elements(setting, data)
            return Node(elements, self.index.place(start, self.at, setting), key)
        if character == "{":
            node = Node({}, self.index.place(start, start + 1, setting), key)
            self.inline(node, setting, data)
            return replace(node, place=self.index.place(start, self.at, setting))
        if character in "\"'":
            self.string()
        else:
            match = _PLAIN.match(self.text, start)
            end = match.end() if match else start + 1
            self.at = start + len(self.text[start:end].rstrip())
        plain = data if isinstance(data, bool | int | float | str) else str(data)
        return Node(plain, self.index.place(start, self.at, setting), key, self.text[start : self.at])

    def elements(self, setting: str, data: Any) -> tuple[Node, ...]:
        """Return the elements of an array."""
        self.at += 1
        nodes: list[Node] = []
        self.skip()
        while self.text[self.at] != "]":
            nodes.append(self.value(f"{setting}.{len(nodes)}", None, data[len(nodes)]))
            self.skip()
            if self.text[self.at] == ",":
                self.at += 1
                self.skip()
        self.at += 1
        return tuple(nodes)

    def inline(self, node: Node, setting: str, data: Any) -> None:
        """Add the pairs of an inline table."""
        self.at += 1
        self.skip()
        while self.text[self.at] != "}":
            self.pair(node, (), data)
            self.skip()
            if self.text[self.at] == ",":
                self.at += 1
                self.skip()
        self.at += 1
        self.rename(node, setting)

    def rename(self, node: Node, setting: str) -> None:
        """Put the table's own name before the settings of its entries."""
        for name, child in list(node.value.items()):
            place = replace(child.place, setting=f"{setting}.{child.place.setting}")
            key = replace(child.key, setting=f"{setting}.{child.key.setting}") if child.key else None
            node.value[name] = replace(child, place=place, key=key)

    def string(self) -> None:
        """Move behind a string of any of the four kinds."""
        text, start = self.text, self.at
        if text.startswith('"""', start):
            match = _LONG_END.match(text, start + 3)
        elif text.startswith("'''", start):
            match = _LONG_LITERAL_END.match(text, start + 3)
        elif text[start] == '"':
            match = _BASIC_END.match(text, start + 1)
        else:
            end = text.find("'", start + 1)
            self.at = end + 1
            return
        self.at = match.end() if match else len(text)

    def blank(self) -> None:
        """Move behind blanks."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def skip(self) -> None:
        """Move behind blanks, line ends and comments."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
