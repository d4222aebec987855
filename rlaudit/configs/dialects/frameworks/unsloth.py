"""What YAML cannot say of unsloth: the calls of one program that belong together, and what its variables switch on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlaudit.configs.arguments import truth
from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.dialects.spec import Spec
from rlaudit.configs.dialects.tree import Tree
from rlaudit.configs.draft import arriving, known
from rlaudit.configs.python_environment import python_environment
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

_CONFIGS = ("GRPOConfig", "UnslothGRPOConfig")
# Fields of vllm_sampling_params that do not count: GRPOConfig's own value is used.
_OVERRULED = ("seed", "n", "temperature", "max_tokens", "logprobs")
# Facts that options of GRPOConfig decide.
_BY_THE_CONFIG = {
    "importance_sampling_correction", "uses_rollout_logprobs", "logs_mismatch", "recomputes_old_logprobs",
    "importance_sampling_mode", "dtype",
}  # fmt: skip
_STANDBY = "UNSLOTH_VLLM_STANDBY"


def models(source: Source, _spec: Spec) -> Iterator[Tree]:
    """Return each model that is loaded with an engine beside it, with the file's one GRPOConfig."""
    configs = _calls(source, *_CONFIGS)
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
        for name, reason in (("model", load.open), ("config", configs[0].open if len(configs) == 1 else "")):
            if reason:
                keys[f"further_{name}_arguments"] = Node(reason, load.place)
        root = Node(keys, load.place)
        yield Tree(root, root, call={0: "none", 1: "grpo"}.get(len(configs), "several"), python_call=load)


def _calls(source: Source, *names: str) -> "tuple[Call, ...]":
    try:
        return source.calls(names) if source.suffix == ".py" else ()
    except (ValueError, RecursionError):  # kept in source.refusals
        return ()


def of_the_config(reading: Reading) -> None:
    """Take the SamplingParams of the GRPOConfig; without a single GRPOConfig, take nothing that one decides."""
    draft, tree = reading.draft, reading.tree
    # unsloth's own config class keeps fields that TRL's has lost.
    draft.lost = [lost for lost in draft.lost if lost.loss is not Loss.REFUSED]
    for name, what in (("model", "from_pretrained"), ("config", "GRPOConfig")):
        node = reading.node(f"further_{name}_arguments")
        if node is not None:
            draft.not_seen.append(f"further arguments of {what}: {node.value}")
    if tree.call != "grpo":
        draft.sampling.clear()
        draft.trainer.clear()
        written = {name: option for name, option in draft.options.items() if option.place is not None}
        draft.options = type(draft.options)(written)
        return
    if (further := reading.node("further_config_arguments")) is not None:
        reason = f"it may be among the further arguments of GRPOConfig: {further.value}"
        for name in [name for name in draft.trainer if name in _BY_THE_CONFIG and draft.trainer[name].place is None]:
            draft.trainer.by_code(name, Unknown(reason), reason)
    given, calls = reading.node("vllm_sampling_params"), _calls(reading.source, "SamplingParams", "vLLMSamplingParams")
    if given is not None and len(calls) == 1:
        _sampling_params(reading, calls[0])
    elif given is not None and given.value is not None:
        reason = "vllm_sampling_params: which SamplingParams(...) it is, this file does not say"
        draft.not_seen.append(reason)
        for name in [name for name in NEUTRAL_SAMPLING if name not in _OVERRULED]:
            draft.sampling.by_code(name, Unknown(reason), reason)


def _sampling_params(reading: Reading, call: "Call") -> None:
    """Take the arguments of a SamplingParams: newer releases use them, apart from five."""
    draft, source = reading.draft, "unsloth 2026.10.9 models/rl_replacements.py"
    for name, node in call.arguments.items():
        if name in _OVERRULED:
            reason = f"GRPOConfig's own value is used for {name} ({source})"
            draft.lose(name, node, Loss.OVERRULED, reason)
            continue
        before, value = draft.sampling.get(name), known(node)
        value = 0 if name == "top_k" and value == -1 else value
        is_same = before is not None and before.known and before.value == value
        if isinstance(value, list) or isinstance(arriving(node), Unknown) or is_same:
            draft.sampling.by_file(name, node)
        else:
            was = "vLLM's default" if before is None else str(before.value)
            older = f"releases of 2025 read {name} only from a list, so they ignore this and use {was}"
            reason = f"{value} with unsloth 2026.10.9; {older} ({source})"
            draft.sampling.by_file(name, node, Unknown(reason), reason)
