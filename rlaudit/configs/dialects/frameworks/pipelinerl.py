"""What YAML cannot say of PipelineRL: dashes in the names of flags."""

from typing import Any

from rlaudit.configs.dialects.reading import Reading
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.syntax.node import within
from rlaudit.configs.syntax.spelling import Write

# Keys that PipelineRL's own configs write without dashes.
_UNSPELT = {"max_model_len"}


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
