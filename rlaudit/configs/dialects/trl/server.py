"""`trl vllm-serve`: TRL's own server up to 1.7, a translation to `vllm serve` from 1.11 at the latest."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.command_lines import line_writer, untold
from rlaudit.configs.dialects.trl.release import TRL, Releases, both, that_run
from rlaudit.configs.draft import Draft, is_said
from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.framework_source.release_here import release_here
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.shell_command import Command
from rlaudit.vllm.milestones import LOGPROBS_MODE, WEIGHT_TRANSFER_CONFIG

# Flag -> engine argument, default, and first release with it (ScriptArguments of trl/scripts/vllm_serve.py).
ENGINE: Mapping[str, tuple[str, Any, str]] = {
    "tensor_parallel_size": ("tensor_parallel_size", 1, "0.16"),
    "gpu_memory_utilization": ("gpu_memory_utilization", 0.9, "0.16"),
    "dtype": ("dtype", "auto", "0.16"),
    "max_model_len": ("max_model_len", None, "0.16"),
    "enable_prefix_caching": ("enable_prefix_caching", None, "0.16"),
    "revision": ("revision", None, "0.16"),
    "data_parallel_size": ("data_parallel_size", 1, "0.18"),
    "enforce_eager": ("enforce_eager", None, "0.17"),
    "kv_cache_dtype": ("kv_cache_dtype", "auto", "0.18"),
    "trust_remote_code": ("trust_remote_code", False, "0.19"),
    "vllm_model_impl": ("model_impl", "vllm", "0.21"),
    # First seen in 1.3.0, not in 1.0.0.
    "distributed_executor_backend": ("distributed_executor_backend", None, "1.1"),
    "speculative_config": ("speculative_config", None, "1.1"),
}
_FRONT = {"model", "host", "port", "log_level", "config"}
_SOURCE = "TRL 1.16.0 scripts/vllm_serve.py:195"


def server_config(
    framework: str, source: Source, command: Command, at: int, arguments: Mapping[str, Node], vllm: Version
) -> RolloutConfig:
    """The engine of one `trl vllm-serve` line. at: index of its first option."""
    draft = Draft(framework, source.path)
    told = _releases(source, arguments, vllm)
    draft.refused_pin = told.refused_pin
    for flag, (name, default, first) in ENGINE.items():
        node = arguments.get(flag)
        if is_said(node):
            draft.engine.by_file(name, node)
        elif default is not None and told.since(first) is not False:
            draft.engine.by_code(name, default, f"TRL's default of --{flag} ({_SOURCE})")
    _logprobs(draft, told, vllm)
    _own_server(draft, told)
    for name, node in arguments.items():
        if name not in ENGINE and name not in _FRONT:
            _remaining(draft, name, node, told)
    for name, node in command.variables.items():
        if name.startswith("VLLM_"):
            draft.environment.by_file(name, node)
    note = "GRPOTrainer and RLOOTrainer; OnlineDPOTrainer does not use the engine's logprobs"
    draft.trains("divides_by_temperature", True, f"`logits / self.temperature` in {note}")
    draft.trains("replays_filters", False, f"softmax over the whole vocabulary in {note}")
    draft.trains("resets_prefix_cache", True, "the trainer posts /reset_prefix_cache after every weight sync")
    draft.trains("weight_updates", "between rollouts", "GRPOTrainer and RLOOTrainer send weights before they generate")
    elsewhere = "the trainer that uses this server is started by another command"
    draft.not_seen += untold(command, at)
    said = f"sampling parameters, importance sampling and precision of the trainer: {elsewhere}"
    draft.not_seen.append(said)
    flag_names = {name: flag for flag, (name, _, _) in ENGINE.items()}

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        if name not in flag_names:
            return None
        return f"--{flag_names[name]}", str(value).lower() if isinstance(value, bool) else str(value)

    offline = told.since("1.8") is False
    write = line_writer(command, at, spell, source)
    config = draft.done(model=arguments.get("model"), offline=offline, place=command.place, write=write)
    return replace(config, sampling=Elsewhere(elsewhere, said=said))


def _releases(source: Source, arguments: Mapping[str, Node], vllm: Version) -> Releases:
    """A flag that TRL's own server does not have stops it, as a field of a trainer config does."""
    takes, runs = Releases(Version("0.16"), None), that_run(vllm, colocated=False)
    for flag in arguments:
        first = Version(ENGINE[flag][2]) if flag in ENGINE else takes.oldest
        if first > takes.oldest:
            takes = Releases(first, None, f"--{flag} is there since {first}")
    if vllm < WEIGHT_TRANSFER_CONFIG and runs.newest is None:
        # From 1.11 on it passes --weight-transfer-config.
        because = f"vLLM {vllm} has no --weight-transfer-config, which TRL's later server passes"
        runs = replace(runs, newest=Version("1.8"), upper=because)
    return both(takes, runs, release_here(source, TRL, None))


def _logprobs(draft: Draft, told: Releases, vllm: Version) -> None:
    if vllm < LOGPROBS_MODE:
        return
    processed = told.since("0.27")
    if processed is False:
        return
    value: Any = "processed_logprobs"
    note = f"`trl vllm-serve` passes it since TRL 0.27 (#4873); this is {told}"
    if processed is None:
        note = f"`trl vllm-serve` passes processed_logprobs since TRL 0.27 and nothing before; this is {told}"
        value = Unknown(note)
    draft.engine.by_code("logprobs_mode", value, note)


def _own_server(draft: Draft, told: Releases) -> None:
    translated = told.since("1.11")
    if translated or (translated is None and told.since("1.8") is not False):
        sure = bool(translated)
        note = f"`trl vllm-serve` runs `vllm serve` from TRL 1.11 at the latest ({_SOURCE})"
        if sure:
            draft.engine.by_code("max_logprobs", -1, note)
            draft.engine.by_code("weight_transfer_config", {"backend": "nccl"}, note)
            draft.environment.by_code("VLLM_SERVER_DEV_MODE", "1", note)


def _remaining(draft: Draft, name: str, node: Node, told: Releases) -> None:
    """`vllm serve` gets flags that TRL does not know, since it is the server; before, they were an error."""
    if told.since("1.8") is False:
        draft.not_seen.append(f"--{name}: `trl vllm-serve` does not take it before TRL 1.11")
        return
    draft.engine.by_file(name, node, note="handed on to `vllm serve` from TRL 1.11 at the latest")
