"""How a hand-written loop updates the engine's weights: its calls of pause, update, reset and resume as trainer facts.

Calls of the engine's own methods are read, also through `collective_rpc` and Ray's `.remote`. A request that is posted
to a route of a server is read as a call of the method at the end of the route. A fact on which two calls of a file
disagree is Unknown, and so is one that another file may decide.
Source: AsyncLLM.pause_generation of vllm/v1/engine/async_llm.py (0.12.0, 0.16.0); the routes of
vllm/entrypoints/serve/dev (0.12.0), and `/update_weights` and `/update_named_param` of frameworks' own servers. That
sleeping resets the prefix cache, so that a wake_up() with the update counts as a reset, is taken from verl's and TRL's
use of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlaudit.configs.draft import Draft, arriving
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import typed
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.settings.trainer_facts import PauseMode, TrainerFacts, WeightUpdates
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

PAUSE, RESET, AWAKE, BY_NAME = "pause_generation", "reset_prefix_cache", "wake_up", "collective_rpc"
UPDATES = ("update_weights", "reload_weights", "load_weights", "update_named_param", "start_weight_update")
METHODS = (PAUSE, RESET, AWAKE, BY_NAME, *UPDATES)
_WEIGHTS = ("weight", "param")
ROUTES: Mapping[str, str] = {
    "pause": PAUSE, "reset_prefix_cache": RESET, "wake_up": AWAKE, "collective_rpc": BY_NAME,
    **{name: name for name in UPDATES},
}  # fmt: skip
_CLIENTS = ("post", "request")
_ROUTE = re.compile(rf"/({'|'.join(ROUTES)})/?(?:\?([^\"'}}]*))?[\"']?\)?$")


def take_weight_updates(draft: Draft, files: Sequence[Source], calls: "Iterable[Call]", *, offline: bool) -> None:
    """Fill `draft.trainer` from the calls of METHODS in a program's files; nothing if none pauses or updates."""
    methods = [(_method(call), call) for call in calls if call.name in METHODS]
    pauses = [call for method, call in methods if method == PAUSE]
    updates = [call for method, call in methods if method in UPDATES]
    if not pauses and not updates:
        return
    if pauses:
        _pause(draft, pauses)
    if updates:
        _updates(draft, updates, offline=offline)
    text = "".join(file.text for file in files)
    _reset(draft, text, methods, updates or pauses)
    if "cache_salt" in text:
        why = "requests carry a cache_salt, and whether it changes with the policy is known only when it runs"
        draft.trains(TrainerFacts(salts_prefix_cache=Unknown(why)), why)
    elif ".generate(" in text:
        note = "requests are made in this file, without a cache_salt"
        draft.trains(TrainerFacts(salts_prefix_cache=False), note)


def _method(call: "Call") -> str:
    """Return the method that a call ends up in; through collective_rpc, one that names weights is an update."""
    if call.name != BY_NAME:
        return call.name
    first = call.positional[0] if call.positional else call.arguments.get("method")
    name = first.value if first is not None and isinstance(first.value, str) else ""
    return RESET if name == RESET else UPDATES[0] if any(word in name for word in _WEIGHTS) else ""


def _pause(draft: Draft, pauses: "list[Call]") -> None:
    mode = _agreed(_mode(call) for call in pauses)
    clears = _agreed(_argument(call, "clear_cache", True) for call in pauses)
    node = Node(None, pauses[0].place)
    draft.trains(TrainerFacts(pause_mode=mode), f"mode of {PAUSE}, abort by default", node)
    draft.trains(TrainerFacts(pause_clears_cache=clears), f"clear_cache of {PAUSE}, true by default", node)
    # A route passes over what it does not know of a query; a method stops at such a keyword.
    if not any(call.open or call.over_http for call in pauses):
        names = list(dict.fromkeys(name for call in pauses for name in call.arguments))
        draft.trains(TrainerFacts(pause_arguments=names), f"keywords of {PAUSE} in this file", node)


def _mode(call: "Call") -> Any:
    waits = _argument(call, "wait_for_inflight_requests", False)
    if isinstance(waits, Unknown):
        return waits
    return _argument(call, "mode", PauseMode.WAIT if waits else PauseMode.ABORT)


def _argument(call: "Call", name: str, default: Any) -> Any:
    argument = call.arguments.get(name)
    if argument is None:
        return Unknown(f"further arguments of {PAUSE}: {call.open}") if call.open else default
    return arriving(argument)


def _agreed(values: Iterable[Any]) -> Any:
    """Return the value that all pauses are given."""
    distinct = {value if isinstance(value, str | bool | Unknown) else Unknown(f"{value!r} is none of its values")
              for value in values}  # fmt: skip
    return distinct.pop() if len(distinct) == 1 else Unknown(f"{PAUSE} is called in several ways in this file")


def _updates(draft: Draft, updates: "list[Call]", *, offline: bool) -> None:
    node = Node(None, updates[0].place)
    name = _method(updates[0])
    pause = draft.trainer.get("pause_mode")
    when: WeightUpdates | Unknown
    if pause is not None and pause.value == PauseMode.KEEP:
        when, why = WeightUpdates.IN_FLIGHT, f"{name} between a pause that keeps requests and its end"
    elif offline or pause is not None:
        when, why = WeightUpdates.BETWEEN_ROLLOUTS, f"{name} while no request runs"
    else:
        why = f"{name} is called; this file does not say whether requests run meanwhile"
        when = Unknown(why)
    draft.trains(TrainerFacts(weight_updates=when), why, node)


def _reset(draft: Draft, text: str, methods: "list[tuple[str, Call]]", calls: "list[Call]") -> None:
    """Add whether the prefix cache is reset with an update: in the same function, else it is unknown.

    text: of the files. methods: the calls in them, by method. calls: those that update or pause.
    """
    resets = [call for method, call in methods if method in {RESET, AWAKE}]
    functions = {call.function for call in calls}
    with_update = [call for call in resets if call.function in functions]
    call, is_reset = calls[0], None
    if with_update:
        call, is_reset, why = with_update[0], True, f"{with_update[0].name}() with the update"
    elif resets:
        function = resets[0].function or "the module"
        call, why = resets[0], f"{resets[0].name}() is called in {function}, not where the weights are updated"
    elif RESET in text:
        why = f"{RESET} is named in this file, and who calls it is not followed"
    else:
        is_reset, why = False, f"no {RESET}() in this file"
    fact = TrainerFacts(resets_prefix_cache=Unknown(why) if is_reset is None else is_reset)
    draft.trains(fact, why, Node(None, call.place))


def posted(source: Source) -> "tuple[Call, ...]":
    """Return the requests of a Python file to one of ROUTES, as calls; nothing if it cannot be parsed."""
    if source.suffix != ".py" or not any(f"/{route}" in source.text for route in ROUTES):
        return ()
    try:
        calls = source.calls(_CLIENTS)
        # A decorator `@app.post("/pause")` defines a route of a server and sends no request.
        requests = (call for call in calls if not source.text[: call.place.start].rstrip().endswith("@"))
        return tuple(request for request in map(_as_method, requests) if request is not None)
    except (ValueError, RecursionError):
        return ()


def _as_method(call: "Call") -> "Call | None":
    for node in (*call.positional[:2], *(call.arguments[name] for name in ("url",) if name in call.arguments)):
        route = _ROUTE.search(node.value if isinstance(node.value, str) else node.text)
        if route is None:
            continue
        arguments = dict(_query(route[2] or "", node))
        for table in ("params", "json", "data"):
            arguments |= {name: _word(value) for name, value in entries(call.arguments.get(table))}
        return replace(
            call, name=ROUTES[route[1]], arguments=arguments, positional=(), open=_open(call), over_http=True
        )
    return None


def _open(call: "Call") -> str:
    """Return why the request may have more arguments than are read; "" if it has not."""
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
    """Return an argument of a query with its type: `"false"` is false."""
    return replace(node, value=typed(node.value)) if isinstance(node.value, str) else node
