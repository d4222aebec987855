"""How a hand-written loop updates the engine's weights: calls of pause, update, reset and resume, as trainer facts.

Calls of the engine's own methods are read, also through `collective_rpc` and Ray's `.remote`, and so are requests to a
server's routes (posted.py). A fact on which two calls of a file disagree is Unknown, and so is one that another file
may well decide.
Source: AsyncLLM.pause_generation of vllm/v1/engine/async_llm.py (0.12.0, 0.16.0). That sleeping resets the prefix
cache, so that a wake_up() with the update counts as a reset, is taken from verl's and TRL's use of it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rlaudit.configs.draft import Draft, arriving
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

PAUSE, RESET, AWAKE, BY_NAME = "pause_generation", "reset_prefix_cache", "wake_up", "collective_rpc"
UPDATES = ("update_weights", "reload_weights", "load_weights", "update_named_param", "start_weight_update")
METHODS = (PAUSE, RESET, AWAKE, BY_NAME, *UPDATES)
_WEIGHTS = ("weight", "param")


def take_weight_updates(draft: Draft, source: Source, calls: "Iterable[Call]", *, offline: bool) -> None:
    """Fill `draft.trainer` from the calls of METHODS in a file; nothing if it neither pauses nor updates."""
    found = [(_method(call), call) for call in calls if call.name in METHODS]
    pauses = [call for method, call in found if method == PAUSE]
    updates = [call for method, call in found if method in UPDATES]
    if not pauses and not updates:
        return
    if pauses:
        _pause(draft, pauses)
    if updates:
        _updates(draft, updates, offline=offline)
    _reset(draft, source, found, updates or pauses)
    if "cache_salt" in source.text:
        why = "requests carry a cache_salt, and whether it changes with the policy is known only when it runs"
        draft.trains("salts_prefix_cache", Unknown(why), why)
    elif ".generate(" in source.text:
        draft.trains("salts_prefix_cache", False, "requests are made in this file, without a cache_salt")


def _method(call: "Call") -> str:
    """Return the method that a call ends up in; through collective_rpc, one that names weights is an update."""
    if call.name != BY_NAME:
        return call.name
    first = call.positional[0] if call.positional else call.arguments.get("method")
    name = first.value if first is not None and isinstance(first.value, str) else ""
    return RESET if name == RESET else UPDATES[0] if any(word in name for word in _WEIGHTS) else ""


def _pause(draft: Draft, pauses: "list[Call]") -> None:
    modes = {_told(_mode(call)) for call in pauses}
    clears = {_told(_argument(call, "clear_cache", True)) for call in pauses}
    node = Node(None, pauses[0].place)
    differ = Unknown(f"{PAUSE} is called in several ways in this file")
    for name, values, note in (
        ("pause_mode", modes, f"mode of {PAUSE}, abort by default"),
        ("pause_clears_cache", clears, f"clear_cache of {PAUSE}, true by default"),
    ):
        draft.trains(name, values.pop() if len(values) == 1 else differ, note, node)
    # A route passes over what it does not know of a query; a method stops at such a keyword.
    if not any(call.open or call.over_http for call in pauses):
        names = list(dict.fromkeys(name for call in pauses for name in call.arguments))
        draft.trains("pause_arguments", names, f"keywords of {PAUSE} in this file", node)


def _mode(call: "Call") -> Any:
    waits = _argument(call, "wait_for_inflight_requests", False)
    if isinstance(waits, Unknown):
        return waits
    return _argument(call, "mode", "wait" if waits else "abort")


def _argument(call: "Call", name: str, default: Any) -> Any:
    given = call.arguments.get(name)
    if given is None:
        return Unknown(f"further arguments of {PAUSE}: {call.open}") if call.open else default
    return arriving(given)


def _told(value: Any) -> Any:
    """Return a value that a set can hold."""
    return value if isinstance(value, str | bool | Unknown) else Unknown(f"{value!r} is none of its values")


def _updates(draft: Draft, updates: "list[Call]", *, offline: bool) -> None:
    node = Node(None, updates[0].place)
    name = _method(updates[0])
    if draft.trainer.get("pause_mode") is not None and draft.trainer["pause_mode"].value == "keep":
        draft.trains("weight_updates", "in flight", f"{name} between a pause that keeps requests and its end", node)
    elif offline or "pause_mode" in draft.trainer:
        draft.trains("weight_updates", "between rollouts", f"{name} while no request runs", node)
    else:
        why = f"{name} is called; whether requests run meanwhile is not told by this file"
        draft.trains("weight_updates", Unknown(why), why, node)


def _reset(draft: Draft, source: Source, found: "list[tuple[str, Call]]", where: "list[Call]") -> None:
    """Whether the prefix cache is reset with an update: in the same function, else it cannot be told."""
    resets = [call for method, call in found if method in {RESET, AWAKE}]
    together = {call.function for call in where}
    near = [call for call in resets if call.function in together]
    if near:
        draft.trains("resets_prefix_cache", True, f"{near[0].name}() with the update", Node(None, near[0].place))
    elif resets:
        home = resets[0].function or "the module"
        why = f"{resets[0].name}() is called in {home}, not where the weights are updated"
        draft.trains("resets_prefix_cache", Unknown(why), why, Node(None, resets[0].place))
    elif RESET in source.text:
        why = f"{RESET} is named in this file, and who calls it is not followed"
        draft.trains("resets_prefix_cache", Unknown(why), why, Node(None, where[0].place))
    else:
        draft.trains("resets_prefix_cache", False, f"no {RESET}() in this file", Node(None, where[0].place))
