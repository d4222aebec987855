"""unsloth: `FastLanguageModel.from_pretrained(..., fast_inference=True)` with TRL's GRPOConfig, in Python."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.arguments import truth
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.unsloth.engine import VARIABLES, collect_engine, collect_head, sampling_params
from rlaudit.configs.draft import Draft, by_file
from rlaudit.configs.elsewhere import Elsewhere, as_written
from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.call_edits import call_writer
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.trl.engine import OPTIONS
from rlaudit.configs.trl.release import TRL, releases
from rlaudit.configs.trl.sampling import collect_sampling
from rlaudit.configs.trl.trainer import collect_facts
from rlaudit.vllm.neutral_sampling import NEUTRAL_SAMPLING

if TYPE_CHECKING:
    from rlaudit.configs.syntax.python_calls import Call

_CONFIGS = ("GRPOConfig", "UnslothGRPOConfig")
_SAMPLING = ("SamplingParams", "vLLMSamplingParams")
_WRITTEN = {
    "max_model_len": "max_seq_length",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "enable_prefix_caching": "enable_prefix_caching",
    "enforce_eager": "enforce_eager",
    "max_num_seqs": "max_num_seqs",
    "max_logprobs": "max_logprobs",
}


def recognise(source: Source) -> bool:
    """Whether unsloth loads a model with a vLLM engine beside it."""
    if source.suffix != ".py" or "fast_inference" not in source.text or "unsloth" not in source.text:
        return False
    return bool(_loads(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One config per model that is loaded so; the file's one GRPOConfig says how it is sampled."""
    return tuple(_config(source, call, vllm) for call in _loads(source))


def _loads(source: Source) -> "tuple[Call, ...]":
    return tuple(
        call for call in _calls(source, "from_pretrained")
        if truth(call.arguments.get("fast_inference"), _is_open(source, call)) is not False
    )  # fmt: skip


def _is_open(source: Source, call: "Call") -> bool:
    """Whether one of unsloth's classes gets keywords that the file does not tell, fast_inference perhaps among them."""
    return bool(call.open) and source.text.startswith("Fast", call.place.start)


def _calls(source: Source, *names: str) -> "tuple[Call, ...]":
    try:
        return source.calls(names)
    except (ValueError, RecursionError):
        return ()


def _config(source: Source, call: "Call", vllm: Version) -> RolloutConfig:
    # Reading Python costs start-up time that other files should not pay.
    from rlaudit.configs.python_environment import python_environment

    draft = Draft("unsloth", source.path)
    collect_engine(draft, call.arguments, vllm)
    draft.list_flags(call.arguments, "fast_inference", "load_in_4bit", "load_in_8bit", "load_in_fp8")
    if call.open:
        draft.not_seen.append(f"further arguments of from_pretrained: {call.open}")
    variables = python_environment(source, VARIABLES)
    draft.environment.update({name: by_file(name, node) for name, node in variables.items()})
    standby = variables.get("UNSLOTH_VLLM_STANDBY")
    if standby is not None:
        sleeps = standby.value != "0" if isinstance(standby.value, str) else standby.value
        draft.engine.by_file("enable_sleep_mode", standby, sleeps, "UNSLOTH_VLLM_STANDBY")
    configs = _calls(source, *_CONFIGS)
    if len(configs) == 1:
        _trainer(draft, source, configs[0], vllm)
    collect_head(draft, variables, vllm)
    if len(configs) == 1 and configs[0].open:
        rest = f"further arguments of {configs[0].name} in line {configs[0].place.line}: {configs[0].open}"
        draft.not_seen.append(rest)
    model = call.arguments.get("model_name") or (call.positional[0] if call.positional else None)
    config = draft.done(model=model, offline=True, place=call.place, write=call_writer(call, _spell, source.text))
    if call.open:
        config = replace(config, engine=as_written(config.engine, "from_pretrained"))
    if len(configs) == 1 and configs[0].open:
        return replace(config, sampling=as_written(config.sampling, configs[0].name))
    if len(configs) == 1:
        return config
    how = "there is no GRPOConfig in this file" if not configs else "several GRPOConfigs are in this file"
    return replace(config, sampling=Elsewhere(how), not_seen=(*config.not_seen, f"sampling and the trainer: {how}"))


def _trainer(draft: Draft, source: Source, call: "Call", vllm: Version) -> None:
    """TRL's sampling and facts; unsloth shares the weights with the engine instead of sending them."""
    arguments: Mapping[str, Node] = call.arguments
    here = release_here(source, TRL, None)
    told = releases(arguments, vllm, colocated=True, born="0.18", patched=True, here=here)
    collect_sampling(draft, arguments, "GRPO", told)
    draft.list_flags(arguments, *OPTIONS)
    collect_facts(draft, arguments, "GRPO", told)
    draft.trainer.pop("resets_prefix_cache", None)
    draft.not_seen.append(
        "whether cached prefixes outlive an update: unsloth reloads the LoRA adapter, or merges it, by release"
    )
    note = "the trainer's own model is the engine's: an update is a new adapter for the next generation"
    draft.trains("weight_updates", "between rollouts", note)
    draft.trains("shares_weights", True, note)
    draft.trains("seeds_replicas", False, "load_vllm seeds every process with 0")
    given = arguments.get("vllm_sampling_params")
    if given is None:
        return
    found = [one for one in _calls(source, *_SAMPLING) if _is_given(source, one, given)]
    if len(found) == 1:
        sampling_params(draft, found[0].arguments)
    elif given.value is not None:
        reason = "vllm_sampling_params: its SamplingParams(...) is not told by this file"
        draft.not_seen.append(reason)
        for name, setting in draft.sampling.items():
            if setting.place is None and name in NEUTRAL_SAMPLING:
                draft.sampling.by_code(name, Unknown(reason), reason)


def _is_given(source: Source, call: "Call", given: Node) -> bool:
    """Whether a SamplingParams call is the argument itself, or the value of the name that the argument is."""
    if given.place.start <= call.place.start < max(given.place.end, given.place.start + 1):
        return True
    before = source.text[: call.place.start].rstrip()
    name = source.text[given.place.start : given.place.end].strip()
    return name.isidentifier() and before.endswith("=") and before[:-1].rstrip().endswith(name)


def _spell(name: str, value: Any) -> tuple[str, str] | None:
    argument = _WRITTEN.get(name)
    return None if argument is None else (argument, repr(value))


DIALECT = Dialect("unsloth", "unsloth", 20, recognise, read)
