"""What YAML cannot say of unsloth: the calls of one program that belong together, and what its variables switch on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlaudit.configs.arguments import truth
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.dialects.spec import Spec
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.python_environment import python_environment
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.unknown import Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

_CONFIGS = ("GRPOConfig", "UnslothGRPOConfig")
_STANDBY = "UNSLOTH_VLLM_STANDBY"


def models(source: Source, _spec: Spec) -> Iterator[Tree]:
    """Return each model that is loaded with an engine beside it, with the file's one GRPOConfig."""
    configs = _calls(source, *_CONFIGS)
    call = {0: "none", 1: "open" if configs and configs[0].open else "grpo"}.get(len(configs), "several")
    for load in _calls(source, "from_pretrained"):
        # Keywords that are not known from the file may hold fast_inference, if the class is one of unsloth's.
        may_be = bool(load.open) and source.text.startswith("Fast", load.place.start)
        if truth(load.arguments.get("fast_inference"), may_be) is False:
            continue
        keys = {**(configs[0].arguments if len(configs) == 1 else {}), **load.arguments}
        if load.positional:
            keys.setdefault("model_name", load.positional[0])
        standby = python_environment(source, (_STANDBY,)).get(_STANDBY)
        if standby is not None:
            keys["unsloth_vllm_standby_variable"] = standby
        if load.open:
            keys["further_model_arguments"] = Node(load.open, load.place)
        root = Node(keys, load.place)
        yield Tree(root, root, call=call, python_call=load)


def _calls(source: Source, *names: str) -> "tuple[Call, ...]":
    try:
        return source.calls(names) if source.suffix == ".py" else ()
    except (ValueError, RecursionError):  # kept in source.refusals
        return ()


def of_the_config(reading: Reading) -> None:
    """Without a GRPOConfig nothing is known of the trainer; what further arguments of one may decide is open."""
    draft, call = reading.draft, reading.tree.call
    reason = "it may be among the further arguments of GRPOConfig"
    for name, fact in list(draft.trainer.items()):
        if call in {"none", "several"}:
            del draft.trainer[name]
        elif call == "open" and fact.place is None:
            draft.trainer.by_code(name, Unknown(reason), reason)
