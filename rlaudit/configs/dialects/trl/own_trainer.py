"""A project's own copy of a TRL trainer, which builds the engine: its file says what else TRL's release would."""

import ast
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rlaudit.configs.draft import Draft, Settings, is_said
from rlaudit.configs.framework_source.bindings import Bound, calls_in, handed_over, place
from rlaudit.configs.framework_source.own_trainer import OwnTrainer
from rlaudit.configs.framework_source.questions import calls, divides_by
from rlaudit.configs.framework_source.tell import engine_names
from rlaudit.configs.rollout_config import Loss, Setting
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

_PREFIX = "vllm_"


def collect_own(draft: Draft, own: OwnTrainer, arguments: Mapping[str, Node], vllm: Version) -> None:
    """Fill a draft from the file of the trainer. arguments: the fields of the trainer's config by name."""
    draft.parts = (*draft.parts, own.source.path)
    draft.not_seen.append(f"what {own.name} in {own.file} does besides building the engine")
    handed = handed_over(own.source, engine_names(vllm))
    used = set()
    for name, bound in handed.arguments.items():
        used.add(bound[0].option)
        _take(draft.engine, name, bound[0], arguments)
    for name in engine_names(vllm) - handed.arguments.keys():
        draft.decided[name] = f"{handed.blocks[0]}, which does not pass it"
    _sampling(draft, own, arguments, vllm)
    _facts(draft, own)
    for option, node in arguments.items():
        name = option.removeprefix(_PREFIX)
        if option.startswith(_PREFIX) and name in Catalogue.at(vllm).engine and option not in used and is_said(node):
            draft.lose(name, node, Loss.NOT_PASSED, f"{own.name} builds the engine without it ({handed.blocks[0]})")


def _take(
    settings: Settings, name: str, bound: Bound, arguments: Mapping[str, Node], default: Setting | None = None
) -> None:
    """What the config writes under the option that is handed on, else the constant. default: of the option."""
    node = arguments.get(bound.option) if bound.option else None
    if node is None or not is_said(node):
        value = bound.constant
        if isinstance(value, Unknown) and bound.option:
            unread = Unknown(f"{bound.option} is not written, and its default is not read")
            value = unread if default is None else default.value
        settings.by_code(name, _dtype(bound, value), bound.where)
    else:
        settings.by_file(name, node, note=f"{bound.where} hands it on")


def _dtype(bound: Bound, value: Any) -> Any:
    """`torch.bfloat16` is no literal, and known all the same."""
    text = ast.unparse(bound.value)
    return text.removeprefix("torch.") if text in {"torch.bfloat16", "torch.float16", "torch.float32"} else value


def _sampling(draft: Draft, own: OwnTrainer, arguments: Mapping[str, Node], vllm: Version) -> None:
    """Where the file makes one SamplingParams; of several it is not known which one trains."""
    made = calls_in(own.source, {"SamplingParams"})
    of_trl = dict(draft.sampling)
    draft.sampling.clear()
    if len(made) != 1 or any(keyword.arg is None for keyword in made[0].keywords):
        said = f"sampling parameters: {own.name} makes {len(made)} SamplingParams, or one of further arguments"
        draft.not_seen.append(said)
        for name in (*NEUTRAL_SAMPLING, "logprobs"):
            draft.sampling.by_code(name, Unknown(said), said)
        return
    where = place(own.source, made[0])
    for keyword in made[0].keywords:
        if keyword.arg is not None and keyword.arg in Catalogue.at(vllm).sampling:
            bound = Bound(keyword.arg, keyword.value, where, True)
            _take(draft.sampling, keyword.arg, bound, arguments, of_trl.get(bound.option))
    for name, neutral in NEUTRAL_SAMPLING.items():
        draft.sampling.unless_set(name, neutral, f"{where} does not name it")


def _facts(draft: Draft, own: OwnTrainer) -> None:
    for fact in ("seeds_replicas", "importance_sampling_mode"):
        draft.trainer.pop(fact, None)
    divided = divides_by("temperature", own.file)(own.checkout)
    if divided is None or divided.value is None:
        reason = f"no line of {own.file} is read as a division of logits by the temperature"
        draft.trains("divides_by_temperature", Unknown(reason), reason)
    else:
        draft.trains("divides_by_temperature", True, divided.where)
    asked = draft.sampling.get("logprobs")
    reason = f"{own.name} may ask for logprobs; what it does with them is not read"
    used: Any = False if asked is None or asked.value is None else Unknown(reason)
    note = f"{own.file} asks for no logprobs" if used is False else reason
    for fact in ("uses_rollout_logprobs", "importance_sampling_correction", "logs_mismatch"):
        draft.trains(fact, used, note)
    draft.trains("recomputes_old_logprobs", True if used is False else used, note)
    reset = calls({"reset_prefix_cache", "sleep"}, own.file)(own.checkout)
    draft.trains("weight_updates", "between rollouts", f"{own.name} loads weights before it generates")
    resets = reset is not None and reset.value
    draft.trains("resets_prefix_cache", resets, reset.where if reset and resets else f"no call of it in {own.file}")
