"""Edits that set an engine argument in a verl config, in a way that its release of verl hands on.

Where verl builds vLLM's command line (v0.6.0 and later, `mode: async`), a field of `rollout` takes everything but
False, which v0.6.0 to v0.9.0 skip; `engine_kwargs.vllm` takes that as the flag's negation (`no_async_scheduling: true`)
and comes after the fields. An in-process engine (`mode: sync`, up to v0.6) gets keywords of `LLM(...)`: False arrives
there, and a negation, or a keyword that verl passes itself, is a TypeError. Where the config does not tell which of
the two it is, False cannot be written.
"""

from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.dialects.verl.engine import FIELDS
from rlaudit.configs.dialects.verl.release import Release
from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.against_copy import words_of
from rlaudit.configs.mapping_writer import Write, dotlist_writer, one_mapping, plain_spelling
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.edit import Edit
from rlaudit.configs.syntax.node import Node

if TYPE_CHECKING:
    from rlaudit.configs.syntax.shell_command import Command

_ROLLOUT = "actor_rollout_ref.rollout."
# A field of older releases too; others need the `+` of a new key where verl's base config does not have them.
_NEWER = {"logprobs_mode", "scheduling_policy", "enable_sleep_mode", "seed", "quantization"}
# What verl's vllm_rollout_spmd.py (v0.4.1, v0.5.0, v0.6.1) passes to LLM from a field of the same meaning.
_IN_PROCESS_FIELDS = {
    "dtype",
    "enforce_eager",
    "gpu_memory_utilization",
    "max_model_len",
    "load_format",
    "disable_log_stats",
    "max_num_batched_tokens",
    "enable_chunked_prefill",
    "tensor_parallel_size",
}
# The same, from v0.6 on only; v0.4 and v0.5 say True for prefix caching and take no field for it.
_IN_PROCESS_SINCE_0_6 = {"max_num_seqs", "enable_prefix_caching"}
# What it says itself, and engine_kwargs may not say again.
_IN_PROCESS_LITERALS = {
    "enable_sleep_mode",
    "distributed_executor_backend",
    "disable_custom_all_reduce",
    "skip_tokenizer_init",
    "trust_remote_code",
    "seed",
    "enable_prefix_caching",
}
_ENGINE_KWARGS = "engine_kwargs.vllm."


def writer_for(rollout: Node, command: "Command | None", source: Source, release: Release) -> Write:
    """The write function of a YAML file's `rollout` mapping or of a script's command."""
    if command is not None:
        return dotlist_writer(command, lambda name, value: _override(name, value, release), source)

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        spelt = spelling(name, value, release)
        if spelt is None:
            return None
        key, text = spelt
        passed = key.startswith(_ENGINE_KWARGS)
        home = rollout.get("engine_kwargs", "vllm") if passed else rollout
        return one_mapping(home, lambda _name, _value: (key.removeprefix(_ENGINE_KWARGS), text), source.text)(
            name, value
        )

    return write


def unless_refused(draft: Draft, release: Release, write: Write) -> Write:
    """The same without the edit that verl itself raises for: chunked prompts in a batch smaller than a sequence
    (v0.6.1 workers/rollout/vllm_rollout/vllm_rollout_spmd.py, "Enable chunked prefill"), where its engine is or may be
    in process.
    """
    batch, length = (_number(draft, name) for name in ("max_num_batched_tokens", "max_model_len"))
    if release.in_process is False or batch is None or (length is not None and batch >= length):
        return write
    return lambda name, value: None if (name, value) == ("enable_chunked_prefill", True) else write(name, value)


def _number(draft: Draft, name: str) -> int | None:
    value = draft.engine[name].value if name in draft.engine else None
    return value if isinstance(value, int) else None


def spelling(name: str, value: Any, release: Release) -> tuple[str, str] | None:  # noqa: PLR0911 - one for each way
    """Key below `rollout` and its value; None where no spelling is certain to arrive."""
    field = next((field for field, argument in FIELDS.items() if argument == name), None)
    if release.engine is not None:
        if field is not None and release.hands_on(name, field):
            return plain_spelling(field, value)
        # A keyword that the copy passes itself cannot be passed twice.
        field = None
        if name in words_of(release.engine):
            return None
    elif release.in_process:
        field = field if _in_process_field(name, release) else None
        if field is None and (name in _IN_PROCESS_LITERALS or _in_process_field(name, release) is None):
            return None
    elif value is False and release.builds_flags is False:
        # v0.4 and v0.5: keywords either way, but their server takes the fields alone.
        return plain_spelling(field, value) if field is not None and name in _IN_PROCESS_FIELDS else None
    elif value is False:
        return (f"{_ENGINE_KWARGS}no_{name}", "true") if release.builds_flags else None
    if field == "logprobs_mode" and release.sets_logprobs_mode is False:
        field = None
    if field is None and not release.passes_engine_kwargs:
        return None
    return plain_spelling(field or f"{_ENGINE_KWARGS}{name}", value)


def _in_process_field(name: str, release: Release) -> bool | None:
    """Whether the in-process engine takes a field for it; None where that depends on the release."""
    if name in _IN_PROCESS_SINCE_0_6:
        return True if release.first >= Version("0.6.0") else False if release.last < Version("0.6.0") else None
    return name in _IN_PROCESS_FIELDS


def _override(name: str, value: Any, release: Release) -> tuple[str, str] | None:
    spelt = spelling(name, value, release)
    if spelt is None:
        return None
    key, text = spelt
    plus = "++" if key.startswith(_ENGINE_KWARGS) or key in _NEWER else ""
    return f"{plus}{_ROLLOUT}{key}", text
