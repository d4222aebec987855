"""Sampling parameters as TRL's trainers send them: all of them, always, whatever the model's generation_config says.

Defaults by release were read in the wheels that release.py names.
"""

from collections.abc import Mapping
from typing import Any

from rlaudit.configs.draft import Draft, arriving, is_said, moved_default
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.trl.release import Releases

# Parameter -> (value before, first release with another, value from there on).
_DEFAULTS: Mapping[str, tuple[Any, str, Any]] = {
    "temperature": (0.9, "0.18", 1.0),
    "top_k": (50, "0.18", 0),
    "top_p": (1.0, "", 1.0),
    "min_p": (0.0, "", 0.0),
    "repetition_penalty": (1.0, "", 1.0),
}
# Before it GRPOTrainer sent no filter: TRL 0.15.2 trainer/grpo_trainer.py:415, against 693 of 0.16.0.
_FILTERS_SENT = "0.16"
# OnlineDPOTrainer: temperature 0.9 in every release; top_k was 50 in code until fields came in 0.23.
_ONLINE_DPO: Mapping[str, tuple[Any, str, Any]] = {
    **_DEFAULTS,
    "temperature": (0.9, "", 0.9),
    "top_k": (50, "0.23", 0),
}
_GOLD: Mapping[str, tuple[Any, str, Any]] = {
    **_DEFAULTS,
    "temperature": (0.9, "", 0.9),
    "top_p": (0.95, "", 0.95),
    "top_k": (0, "", 0),
}
_REGEX = ("vllm_guided_decoding_regex", "vllm_structured_outputs_regex")
_SOURCE = "TRL 1.16.0 generation/vllm_generation.py:617 and the same call of earlier releases"


def collect_sampling(draft: Draft, arguments: Mapping[str, Node], trainer: str, told: Releases) -> None:
    """Fill `draft.sampling`. trainer: GRPO, RLOO, OnlineDPO, GOLD or AsyncGRPO."""
    defaults = {"OnlineDPO": _ONLINE_DPO, "GOLD": _GOLD}.get(trainer, _DEFAULTS)
    for name, default in defaults.items():
        if name == "top_k" and trainer == "GRPO" and told.since(_FILTERS_SENT) is not True:
            draft.sampling.written_or(name, arguments.get(name), _unsent(told), f"not sent before TRL {_FILTERS_SENT}")
            continue
        draft.sampling.written_or(
            name, arguments.get(name), _default(name, default, told), f"TRL's default; sent always ({_SOURCE})"
        )
    for key, name in (("max_completion_length", "max_tokens"), ("max_new_tokens", "max_tokens")):
        if key in arguments:
            draft.sampling.by_file(name, arguments[key])
    for key in _REGEX:
        if key in arguments and is_said(arguments[key]):
            draft.sampling.by_file("structured_outputs", arguments[key])
    if trainer == "GRPO" and told.since("0.23"):
        draft.sampling.by_code("logprobs", 0, "GRPOTrainer asks for the sampled token's logprob since 0.23")
    _extra(draft, arguments.get("generation_kwargs"))


def _default(name: str, default: tuple[Any, str, Any], told: Releases) -> Any:
    before, release, after = default
    newer = told.since(release) if release and before != after else True
    reason = f"{name} is not written: TRL's default is {before} before {release} and {after} from there on"
    return moved_default(newer, before, after, reason)


def _unsent(told: Releases) -> Any:
    if told.since(_FILTERS_SENT) is False:
        return 0
    return Unknown(f"top_k is not written: TRL sends none before {_FILTERS_SENT}, 50 in 0.16 and 0.17, and none later")


def _extra(draft: Draft, node: Node | None) -> None:
    """`generation_kwargs` is written over the rest (`generation_kwargs.update(...)`, TRL since 0.19)."""
    if not is_said(node):
        return
    if isinstance(node.value, dict):
        for name, child in node.items():
            draft.sampling.by_file(name, child)
    else:
        unknown = arriving(node)
        reason = unknown.reason if isinstance(unknown, Unknown) else "it is no mapping"
        draft.not_seen.append(f"generation_kwargs ({reason}): it may change any sampling parameter")
