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

# The word after an operator holds no variable of its own.
_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_]\w*)(?:(?P<operator>:?[-?+])(?P<word>[^${}]*))?\}"
    r"|(?P<bare>[A-Za-z_]\w*)|(?P<filled>\([^)]*\)?)|(?P<other>\{[^}]*\}?))"
)
_TEMPLATE = "a template fills it in"


@dataclass(frozen=True, eq=False)
class Expanded(Node):
    """A node whose variables are filled in."""

    # The defaults that were taken, in sentences.
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
    value = _filled(node.value, assumed)
    return Expanded(value, node.place, node.key, node.text, tuple(assumed))


def assumptions(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the defaults that were taken in any of the nodes."""
    assumed = (node.assumed for node in nodes if isinstance(node, Expanded))
    return tuple(dict.fromkeys(chain.from_iterable(assumed)))


def _filled(text: str, assumed: dict[str, None]) -> Any:
    parts: list[str] = []
    at = 0
    for match in _VARIABLE.finditer(text):
        value = _value(match, assumed)
        if isinstance(value, Unknown):
            return value
        parts += (text[at : match.start()], value)
        at = match.end()
    return "".join([*parts, text[at:]])


def _value(match: re.Match[str], assumed: dict[str, None]) -> str | Unknown:
    """Return what one variable is filled in with: its default, or nothing for `${A+x}`."""
    name, operator = match["name"], match["operator"] or ""
    if match["dollar"]:
        return "$"
    if match["filled"]:
        return Unknown(f"{match.group()} is filled in when it starts")
    if match["other"]:
        return Unknown(f"{match.group()[:43]} is not evaluated")
    if operator[-1:] not in {"-", "+"}:
        return _outside(name or match["bare"])
    value: str = match["word"] if operator[-1] == "-" else ""
    assumed[taken_at_default(name, value)] = None
    return value


def _outside(name: str) -> Unknown:
    return Unknown(f"the environment variable {name} decides")
