"""Edits that set an engine argument in a verl config, so that every release of verl hands it on.

A field of `rollout` takes everything but False: releases v0.6.0 to v0.9.0 skip that. `engine_kwargs.vllm` takes it as
the flag's negation (`no_enable_prefix_caching: true` becomes `--no_enable_prefix_caching`), in every release, and comes
after the fields.
"""

from typing import TYPE_CHECKING, Any

from rlaudit.rollout_config.edit import Edit
from rlaudit.rollout_config.node import Node
from rlaudit.rollout_config.serializers.mapping_writer import Write, dotlist_writer, one_mapping, plain_spelling
from rlaudit.rollout_config.serializers.verl_engine import FIELDS
from rlaudit.rollout_config.source import Source

if TYPE_CHECKING:
    from rlaudit.rollout_config.shell_text import Command

_ROLLOUT = "actor_rollout_ref.rollout."
# A field of older releases too; others need the `+` of a new key where verl's base config does not have them.
_NEWER = {"logprobs_mode", "scheduling_policy", "enable_sleep_mode", "seed", "quantization"}


def writer_for(rollout: Node, command: "Command | None", source: Source) -> Write:
    """The write function of a YAML file's `rollout` mapping or of a script's command."""
    if command is not None:
        return dotlist_writer(command, _override, source)

    def write(name: str, value: Any) -> tuple[Edit, ...] | None:
        field = _field(name)
        if field is not None and value is not False:
            return one_mapping(rollout, lambda _name, wanted: plain_spelling(field, wanted), source.text)(name, value)
        return one_mapping(rollout.get("engine_kwargs", "vllm"), _passed_on, source.text)(name, value)

    return write


def _field(name: str) -> str | None:
    return next((field for field, argument in FIELDS.items() if argument == name), None)


def _passed_on(name: str, value: Any) -> tuple[str, str] | None:
    return (f"no_{name}", "true") if value is False else plain_spelling(name, value)


def _override(name: str, value: Any) -> tuple[str, str] | None:
    field = _field(name)
    if field is not None and value is not False:
        spelt = plain_spelling(field, value)
        plus = "++" if field in _NEWER else ""
        return None if spelt is None else (f"{plus}{_ROLLOUT}{field}", spelt[1])
    spelt = _passed_on(name, value)
    return None if spelt is None else (f"++{_ROLLOUT}engine_kwargs.vllm.{spelt[0]}", spelt[1])
