"""OpenRLHF: `openrlhf.cli.train_ppo_ray` on a command line, with flat options until 0.9 and dotted ones since."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from packaging.version import Version

from rlaudit.configs.arguments import by_name
from rlaudit.configs.command_lines import command_lines, line_writer, untold
from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.openrlhf.engine import collect, finished
from rlaudit.configs.dialects.openrlhf.options import SPELT, SWITCHES, Options, is_switch
from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.against_copy import FrameworkFiles, hold_against
from rlaudit.configs.ray_job import take_job_environment
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.flags import Flag, flags
from rlaudit.configs.syntax.shell_command import Command

FILES = FrameworkFiles(
    "openrlhf",
    engine=("openrlhf/trainer/ray/vllm_engine.py",),
    options=("openrlhf/cli/train_ppo_ray.py",),
    prefix="vllm.",
)
_MARKS = ("openrlhf.cli.train_ppo_ray", "openrlhf/cli/train_ppo_ray.py")
_INTERVAL = "is_correction_threshold"
# Words in the names, dotted or not, of options that decide how rollouts are made, corrected and learnt from.
_OPTIONS = (
    "is_correction", "vllm_is_", "num_engines", "n_samples_per_prompt", "async_train", "eps_clip", "dual_clip",
    "policy_loss_type", "kl_loss", "kl.", "init_kl_coef", "kl_estimator", "max_epochs", "prompt_max_len",
    "generate_max_len", "data.max_len", "advantage_estimator", "advantage.estimator", "entropy_loss_coef",
    "entropy_coef", "normalize_reward", "colocate", "sync_backend", "gamma", "lambd",
)  # fmt: skip
_WRITTEN = (
    "tensor_parallel_size",
    "enable_prefix_caching",
    "enforce_eager",
    "enable_sleep_mode",
    "gpu_memory_utilization",
)


def recognise(source: Source) -> bool:
    """Whether a command starts OpenRLHF's Ray trainer with vLLM engines."""
    return any(mark in source.text for mark in _MARKS) and any(True for _ in _lines(source))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One config per trainer that the file starts."""
    return tuple(_config(source, command, at, options, vllm) for command, at, options in _lines(source))


def _lines(source: Source) -> Iterator[tuple[Command, int, Options]]:
    for command in command_lines(source, *_MARKS):
        for at, word in enumerate(command.words):
            if isinstance(word.value, str) and word.value.endswith(_MARKS):
                options = Options(by_name(map(_whole, flags(command.words, at + 1, is_switch))))
                if options.get("num_engines") is not None:
                    yield command, at + 1, options
                break


def _whole(flag: Flag) -> Flag:
    """A threshold may be two words, the ends of an interval."""
    if flag.value is None or not flag.more or not flag.name.endswith(_INTERVAL):
        return flag
    text = " ".join(word.text for word in (flag.value, *flag.more))
    return replace(flag, value=replace(flag.value, value=text, text=text))


def _config(source: Source, command: Command, at: int, options: Options, vllm: Version) -> RolloutConfig:
    draft = Draft("openrlhf", source.path, bare=True)
    collect(draft, options, vllm)
    draft.list_flags(options.nodes, *_OPTIONS)
    draft.not_seen += untold(command, at)
    _variables(draft, source, command)
    hold_against(draft, FILES, FILES.checkout(source), vllm)
    return finished(draft, options, command.place, line_writer(command, at, _spell(options), source))


def _variables(draft: Draft, source: Source, command: Command) -> None:
    if take_job_environment(draft, source, command, ("VLLM_",)):
        return
    for name, node in command.variables.items():
        if name.startswith("VLLM_") and name not in draft.environment:
            draft.environment.by_file(name, node)


def _spell(options: Options) -> Any:
    """A switch can be added, not denied: leaving it out is its false."""

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        if name not in _WRITTEN:
            return None
        flag = f"--{SPELT[name][0 if options.dotted else 1]}"
        if name in SWITCHES:
            return (flag, "") if value is True else None
        return flag, str(value)

    return spell


DIALECT = Dialect("openrlhf", "OpenRLHF", 10, recognise, read)
