"""The model of a Python program that trains: it is an argument of the trainer, and not of its config."""

from dataclasses import replace
from typing import TYPE_CHECKING

from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

_LOADS = "from_pretrained"
_NAMES = ("pretrained_model_name_or_path", "model_name")


def model_of_trainer(source: Source, config: str) -> Node | None:
    """Return the model that `XTrainer(model=...)` gets in the file of an XConfig; None if the file gives none.

    A model that the program loads itself is the one of its only `SomeModel.from_pretrained(...)`.
    """
    trained = _firsts(source.calls((config.replace("Config", "Trainer"),)), ("model",))
    named = _named(trained) or (_named(_firsts(_loading(source), _NAMES)) if trained else {})
    node = next(iter([*named.values(), *trained]), None)
    if node is None or len(named) <= 1:
        return node
    return replace(node, value=Unknown(f"{' and '.join(named)} are trained in this file"))


def _named(nodes: list[Node]) -> dict[str, Node]:
    """Return the nodes that name a model, if only by a default, each name once."""
    defaults = [node.value.at_default if isinstance(node.value, Unknown) else None for node in nodes]
    names = [node.value if default is None else default[1] for node, default in zip(nodes, defaults, strict=True)]
    return {name: node for name, node in zip(names, nodes, strict=True) if isinstance(name, str)}


def _loading(source: Source) -> "tuple[Call, ...]":
    """Return the calls that load a model, and no tokenizer or processor."""
    calls = source.calls((_LOADS,))
    return tuple(call for call in calls if "Model" in source.text[call.place.start :].partition(_LOADS)[0])


def _firsts(calls: "tuple[Call, ...]", names: tuple[str, ...]) -> list[Node]:
    """Return the first argument of each call that has one, by any of its names."""
    given = (next((call.arguments[name] for name in names if name in call.arguments), None) for call in calls)
    nodes = [node or next(iter(call.positional), None) for node, call in zip(given, calls, strict=True)]
    return [node for node in nodes if node is not None]
