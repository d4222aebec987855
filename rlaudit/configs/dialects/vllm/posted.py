"""Requests that Python posts to the routes with which a vLLM server is paused, updated and resumed.

Each is read as a call of the engine's method that the route ends in (vllm/entrypoints/serve/dev of 0.12.0 and later;
`/update_weights` and `/update_named_param` belong to frameworks' own servers), so that a loop that drives a server over
HTTP is read like one that holds the engine.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.configs.dialects.vllm.weight_updates import AWAKE, BY_NAME, PAUSE, RESET, UPDATES
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import typed
from rlaudit.configs.syntax.node import Node, entries

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

ROUTES: Mapping[str, str] = {
    "pause": PAUSE, "reset_prefix_cache": RESET, "wake_up": AWAKE, "collective_rpc": BY_NAME,
    **{name: name for name in UPDATES},
}  # fmt: skip
_CLIENTS = ("post", "request")
_ROUTE = re.compile(rf"/({'|'.join(ROUTES)})/?(?:\?([^\"'}}]*))?[\"']?\)?$")


def posted(source: Source) -> "tuple[Call, ...]":
    """Return the requests of a Python file to one of ROUTES, as calls; nothing if it cannot be parsed."""
    if source.suffix != ".py" or not any(f"/{route}" in source.text for route in ROUTES):
        return ()
    try:
        return tuple(
            one
            for call in source.calls(_CLIENTS)
            if not _defines_a_route(source, call) and (one := _as_method(call)) is not None
        )
    except (ValueError, RecursionError):
        return ()


def _defines_a_route(source: Source, call: "Call") -> bool:
    """Return whether the call defines a route, as `@app.post("/pause")` of a server does, and sends no request."""
    return source.text[: call.place.start].rstrip().endswith("@")


def _as_method(call: "Call") -> "Call | None":
    for node in (*call.positional[:2], *(call.arguments[name] for name in ("url",) if name in call.arguments)):
        found = _ROUTE.search(node.value if isinstance(node.value, str) else node.text)
        if found is None:
            continue
        arguments = dict(_query(found[2] or "", node))
        for table in ("params", "json", "data"):
            arguments |= {name: _word(value) for name, value in entries(call.arguments.get(table))}
        return replace(
            call, name=ROUTES[found[1]], arguments=arguments, positional=(), open=_open(call), over_http=True
        )
    return None


def _open(call: "Call") -> str:
    """Return why the request may say more than is read."""
    for table in ("params", "json", "data"):
        node = call.arguments.get(table)
        if node is not None and not isinstance(node.value, dict):
            return f"{table}={node.text}"
    return call.open


def _query(text: str, node: Node) -> Iterator[tuple[str, Node]]:
    for part in filter(None, text.split("&")):
        name, _, value = part.partition("=")
        yield name, replace(node, value=typed(value))


def _word(node: Node) -> Node:
    """`"false"` in a query is false."""
    return replace(node, value=typed(node.value)) if isinstance(node.value, str) else node
