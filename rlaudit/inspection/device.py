"""The device that a config chooses for its engine: an Ascend NPU or an AMD GPU, if its certain settings say so.

What chooses: an image, the framework's option for the device, and variables that vLLM's code for one of these devices
alone reads, exported to this engine under no condition. A probe, a branch, a name or another word of the file chooses
nothing: it is only said, and the engine is judged by CUDA's defaults. What vLLM's platform decides on such a device is
not read here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.place import Place
from rlaudit.vllm.machine import NPU, ROCM, Machine

_VARIABLES = {"VLLM_ASCEND_": NPU, "VLLM_ROCM_": ROCM}
# As the registries spell them: quay.io/ascend/vllm-ascend, rocm/vllm, vllm/vllm-openai-rocm.
_NAMED = (
    (NPU, re.compile(r"npu|(?:[\w.:-]+/)*(?:ascend/[\w.-]+|vllm-ascend)(?:[:@].*)?")),
    (ROCM, re.compile(r"(?:[\w.:-]+/)*(?:rocm/[\w.-]+|vllm-(?:openai-)?rocm)(?:[:@].*)?")),
)
# Words of files that also run on such a device.
_WORDS = (
    (NPU, re.compile(r"\b(?:torch_npu|vllm[-_]ascend|(?:VLLM_)?ASCEND_\w+|HCCL_\w+)\b|(?<![\w.-])npu(?![\w.:-])")),
    (ROCM, re.compile(r"\b(?:rocm|(?:VLLM_|HIP_|PYTORCH_)?ROCM_\w+|HIP_VISIBLE_DEVICES(?==))\b")),
)


@dataclass(frozen=True)
class Device:
    """The machine, and the sentence with what chooses it."""

    machine: Machine
    said: str


def device_of(config: RolloutConfig) -> Device | None:
    """The device that a config chooses for its engine; None if nothing certain does, or if two things disagree."""
    found = list(_choices(config))
    if len({machine.platform for machine, _, _ in found}) != 1:
        return None
    machine, place, clue = found[0]
    return Device(
        machine, f"{place}: {clue} is of {machine.name}: what vLLM's platform for it decides is not read here"
    )


def _choices(config: RolloutConfig) -> Iterator[tuple[Machine, Place, str]]:
    """The machine, where it is chosen, and the word that chooses it."""
    for one in (config.device, config.engine.get("device")):
        if one is not None and one.place is not None and isinstance(one.value, str):
            for machine, names in _NAMED:
                if names.fullmatch(one.value):
                    yield machine, one.place, one.value
    for name, one in config.environment.items():
        # Of a Python program it is not read whether the function, or the `try`, that sets a variable is run.
        if one.known and one.place is not None and not one.place.path.endswith(".py"):
            for prefix, machine in _VARIABLES.items():
                if name.startswith(prefix):
                    yield machine, one.place, name


def of_other_devices(source: Source) -> Iterator[str]:
    """A sentence for each device that a file names outside of comments without choosing it."""
    for machine, words in _WORDS:
        for match in words.finditer(source.text):
            begun = source.text.rfind("\n", 0, match.start()) + 1
            if not re.match(r"(?:.*\s)?#", source.text[begun : match.start()]):
                line = source.text.count("\n", 0, begun) + 1
                yield (
                    f"{source.path}:{line}: what runs on {machine.name} ({match.group()}): nothing certain chooses "
                    f"that platform, so CUDA is assumed (--platform {machine.platform} chooses it)"
                )
                break
