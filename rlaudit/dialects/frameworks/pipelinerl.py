"""What YAML cannot say of PipelineRL: flags that the V1 server is not given, two temperatures, and dashes."""

import re
from typing import Any

from rlaudit.configs.draft import arriving
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.syntax.node import within
from rlaudit.configs.syntax.spelling import Write
from rlaudit.dialects.reading import Reading
from rlaudit.dialects.settling import put
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

_DROPPED = ("disable_log_requests", "disable_frontend_multiprocessing")
# Keys that PipelineRL's own configs write without dashes.
_UNSPELT = {"max_model_len"}


def dropped_flags(reading: Reading) -> None:
    """Drop the flags that launch.py leaves out for the V1 server. A copy that names no such flag keeps it."""
    if reading.holds("v0") is True:
        return
    checkout = reading.code.checkout
    launch = checkout.file("pipelinerl/launch.py") if checkout is not None else None
    steps = ("num_scheduler_steps",) if reading.is_written("vllm_config.use_v1") else ()
    for name in (*_DROPPED, *steps):
        if launch is not None and re.search(name.replace("_", "[-_]"), launch.text) is None:
            continue
        setting = reading.draft.engine.pop(name, None)
        if setting is not None:
            kwargs = reading.node("vllm_config.vllm_kwargs")
            node = within(kwargs, name.replace("_", "-")) or within(kwargs, name)
            assert node is not None
            reading.draft.lose(name, node, Loss.NOT_PASSED, "launch.py leaves it out for the V1 server (58d3934)")


def division(reading: Reading) -> None:
    """Settle whether the trainer divides its logits by the temperature at which the engine samples."""
    trainer, rollout = reading.node("finetune.rl.temperature"), reading.node("llm.parameters.temperature")
    value: Any = True
    if trainer is not None and rollout is not None:
        divisor, temperature = arriving(trainer), arriving(rollout)
        if isinstance(divisor, Unknown):
            # Not followed, as the base config is elsewhere: the published one follows the rollout's temperature.
            value = True if "llm.parameters.temperature" in trainer.text else divisor
        elif not isinstance(temperature, Unknown) and divisor != temperature:
            divides = f"the trainer divides by {divisor} (finetune.rl.temperature)"
            value = Unknown(f"{divides}, the rollout samples at {temperature}")
    because = "the logits are divided by finetune.rl.temperature"
    at = {"pipelinerl/finetune/rl/__init__.py": "logits / config.temperature"}
    put(reading, "trainer", "divides_by_temperature", {"value": value, "because": because, "at": at})


def flag_writer(reading: Reading) -> Write:
    """Return a writer that spells flags as PipelineRL's own configs do, with dashes.

    A launch.py before 2026-04-22 passes a false as a text: there, and if it may be one, a switch is a bare flag.
    """
    kwargs = within(reading.tree.own, "vllm_config", "vllm_kwargs")
    at = {"pipelinerl/launch.py": "isinstance(v, bool)"}
    takes_false = reading.code.has(at) if reading.code.checkout is not None else reading.holds("older") is False

    def spelt(name: str, value: Any) -> tuple[str, str] | None:
        key = name if name in _UNSPELT else name.replace("_", "-")
        if takes_false or not isinstance(value, bool):
            return plain_spelling(key, value)
        opposite = key if value is False else f"no-{key}"
        if within(kwargs, opposite) is not None or within(kwargs, opposite.replace("-", "_")) is not None:
            return None
        return key if value else f"no-{key}", '""'

    return one_mapping(kwargs, spelt, reading.source.text)
