"""YAML and JSON with the place of every key and value.

The parser is PyYAML's (libyaml if its wheel has it); only its node graph is used, so nothing is constructed and no
tag is obeyed. Aliases are followed up to a total that real configs never reach: a "billion laughs" file ends there.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.unreadable import UnreadableText, refuse_depth, refuse_length
from rlaudit.settings.place import Place
from rlaudit.unknown import Unknown

MOST_NODES = 60_000
MOST_LINES = 20_000
MOST_CHARACTERS = 1_000_000
DEEPEST = 200
LONGEST_NUMBER = 64
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Of scalars: its numbers are YAML 1.1's, in any base.
_CONSTRUCTOR: Any = yaml.constructor.SafeConstructor()
_TRUE = {"yes", "true", "on"}
# PyYAML reads YAML 1.1, where 1e-6 is a string; OmegaConf, and with it every Hydra config, reads it as a float.
_FLOAT = re.compile(r"[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+|[-+]?\.\d[\d_]*([eE][-+]?\d+)?")
_COMPACT = re.compile(r"(?:[-?:][ \t]+)+")


def parse_plain_yaml(text: str, path: str) -> tuple[Node, ...]:
    """Return the documents of `text`, with `${...}` as any other text. Raises UnreadableText."""
    _refuse_extremes(text)
    try:
        roots = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise UnreadableText(str(error.problem or error.context or "not YAML"), line) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnreadableText(str(error) or "nested too deeply") from None
    builder = _Builder(text, path)
    return tuple(builder.node(root, (), None, 0) for root in roots if root is not None)


def _refuse_extremes(text: str) -> None:
    """Raise UnreadableText for what would cost seconds, or overflow the stack of libyaml's recursive composer."""
    refuse_length(text, MOST_LINES, MOST_CHARACTERS)
    refuse_depth(text, DEEPEST)
    for run in _COMPACT.finditer(text):
        if run.end() - run.start() > 2 * DEEPEST and len(run.group().split()) > DEEPEST:
            raise UnreadableText(f"nested deeper than {DEEPEST} levels", text.count("\n", 0, run.start()) + 1)


class _Builder:
    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.count = text, path, 0

    def node(self, raw: Any, keys: tuple[str, ...], key: Place | None, depth: int) -> Node:
        """Return the node of one YAML node."""
        self.counted(raw, depth)
        place = self.place(raw, keys)
        if isinstance(raw, yaml.MappingNode):
            return Node(dict(self.entries(raw, keys, depth)), place, key)
        if isinstance(raw, yaml.SequenceNode):
            elements = (self.node(child, (*keys, str(index)), None, depth + 1) for index, child in enumerate(raw.value))
            return Node(tuple(elements), place, key)
        return Node(scalar(raw), place, key, self.text[place.start : place.end])

    def counted(self, raw: Any, depth: int) -> None:
        """Raise UnreadableText for the node too many, or too deep."""
        self.count += 1
        if self.count > MOST_NODES:
            raise UnreadableText(f"more than {MOST_NODES} values, counting aliases", raw.start_mark.line + 1)
        if depth > DEEPEST:
            raise UnreadableText(f"nested deeper than {DEEPEST} levels", raw.start_mark.line + 1)

    def entries(self, raw: Any, keys: tuple[str, ...], depth: int) -> Iterator[tuple[str, Node]]:
        """Yield own keys last, so that they win over merged ones; of several merged mappings the first wins.

        What an own key holds that is written twice is open: PyYAML takes the last, and OmegaConf refuses the file.
        """
        for name, child in raw.value:
            if name.value == "<<":
                parents = child.value if isinstance(child, yaml.SequenceNode) else [child]
                for parent in reversed(parents):
                    self.counted(parent, depth + 1)
                    if isinstance(parent, yaml.MappingNode):
                        yield from self.entries(parent, keys, depth + 1)
        lines: dict[str, int] = {}
        for name, child in raw.value:
            if isinstance(name, yaml.ScalarNode) and name.value != "<<":
                path = (*keys, name.value)
                node, line = self.node(child, path, self.place(name, path), depth + 1), name.start_mark.line + 1
                if name.value in lines:
                    twice = f"{name.value} is written twice, in line {lines[name.value]} and in line {line}"
                    node = replace(node, value=Unknown(f"{twice}: PyYAML takes the last, OmegaConf refuses the file"))
                lines[name.value] = line
                yield name.value, node

    def place(self, raw: Any, keys: tuple[str, ...]) -> Place:
        """Return the place of a YAML node. Block scalars and collections end with their last line."""
        first, last = int(raw.start_mark.index), int(raw.end_mark.index)
        if not isinstance(raw, yaml.ScalarNode) or raw.style in {"|", ">"}:
            last = first + len(self.text[first:last].rstrip())
        mark = raw.start_mark
        return Place(self.path, mark.line + 1, mark.column + 1, ".".join(keys), first, max(first, last))


def scalar(raw: Any) -> Any:  # noqa: PLR0911 - one for each tag
    """Return the value of a scalar node, by YAML 1.1 and OmegaConf's floats; Unknown for a foreign tag."""
    text, kind = raw.value, raw.tag.rpartition(":")[2]
    if not raw.tag.startswith("tag:yaml.org,2002:"):
        return Unknown(f"the tag {raw.tag} is not read")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in _TRUE
    if len(text) > LONGEST_NUMBER:
        return text
    try:
        if kind == "int":
            return _CONSTRUCTOR.construct_yaml_int(raw)
        if kind == "float":
            return _CONSTRUCTOR.construct_yaml_float(raw)
        if kind == "str" and not raw.style and _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
    except ValueError:
        return text
    return text
