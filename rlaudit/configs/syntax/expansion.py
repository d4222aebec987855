"""Variables in a YAML value (`${VAR:-default}`), as compose, envsubst or Kubernetes fill them in before anything runs.

A default counts as the value, since it is used if the variable is not set; a sentence says that it was taken. A
variable without a default, Kubernetes' `$(OTHER)` and a template (`{{ .Values.x }}`) are decided elsewhere: Unknown.
Source: the Compose specification, "Interpolation"; Kubernetes, "Define Dependent Environment Variables".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from rlaudit.configs.syntax.node import Node
from rlaudit.configs.syntax.shell_command import taken_at_default
from rlaudit.unknown import Unknown

DEEPEST = 8
_NAME = re.compile(r"[A-Za-z_]\w*")
_BRACED = re.compile(r"([A-Za-z_]\w*)(?:(:?[-?+])(.*))?", re.DOTALL)
_TEMPLATE = "a template fills it in"


@dataclass(frozen=True, eq=False)
class Expanded(Node):
    """A node whose variables are filled in. assumed: the defaults that were taken, in sentences."""

    assumed: tuple[str, ...] = ()


def expanded(node: Node) -> Node:
    """Return the node with its variables filled in."""
    if isinstance(node.value, dict | tuple):
        # Unquoted, `{{ .Values.dtype }}` is a mapping to YAML.
        return replace(node, value=Unknown(_TEMPLATE))
    if not isinstance(node.value, str) or not ("$" in node.value or "{{" in node.value):
        return node
    if "{{" in node.value:
        return replace(node, value=Unknown(_TEMPLATE))
    assumed: dict[str, None] = {}
    value = _filled(node.value, assumed, 0)
    return Expanded(value, node.place, node.key, node.text, tuple(assumed))


def assumptions(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the defaults that were taken in any of the nodes."""
    assumed = (node.assumed for node in nodes if isinstance(node, Expanded))
    return tuple(dict.fromkeys(chain.from_iterable(assumed)))


def _filled(text: str, assumed: dict[str, None], depth: int) -> Any:
    if depth > DEEPEST:
        return Unknown("its defaults are nested too deeply")
    parts: list[str] = []
    at = 0
    while at < len(text):
        dollar = text.find("$", at)
        if dollar < 0 or dollar + 1 >= len(text):
            parts.append(text[at:])
            break
        parts.append(text[at:dollar])
        following = text[dollar + 1]
        if following == "$":
            value, at = "$", dollar + 2
        elif following == "{":
            end = _closing(text, dollar + 2)
            value, at = _braced(text[dollar + 2 : end], assumed, depth), end + 1
        elif following == "(":
            return Unknown(f"{text[dollar:].partition(')')[0]}) is filled in when it starts")
        elif (name := _NAME.match(text, dollar + 1)) is not None:
            return _outside(name.group())
        else:
            value, at = "$", dollar + 1
        if isinstance(value, Unknown):
            return value
        parts.append(value)
    return "".join(parts)


def _braced(inside: str, assumed: dict[str, None], depth: int) -> Any:
    """Return the text of `${inside}` if the variable is not set."""
    match = _BRACED.fullmatch(inside)
    if match is None:
        return Unknown(f"${{{inside[:40]}}} is not evaluated")
    name, operator, word = match.groups(default="")
    if operator[-1:] not in {"-", "+"}:
        return _outside(name)
    value = _filled(word, assumed, depth + 1) if operator[-1] == "-" else ""
    if not isinstance(value, Unknown):
        assumed[taken_at_default(name, value)] = None
    return value


def _closing(text: str, at: int) -> int:
    """Return the place of the brace that closes the one before `at`; the end of the text if it is not closed."""
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    return len(text)


def _outside(name: str) -> Unknown:
    return Unknown(f"the environment variable {name} decides")
