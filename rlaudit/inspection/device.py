"""The device that a file is written for, where it says so: variables, images and options of Ascend NPUs and AMD GPUs.

What vLLM's plug-in for such a device decides is not read here; a default of CUDA must not be taken for it.
"""

import re
from dataclasses import dataclass

from rlaudit.vllm.machine import NPU, ROCM, Machine

# Words without which there is no clue, and the clues; those are compiled where a word is there, which is seldom.
_CLUES = (
    (
        NPU, ("ASCEND", "ascend", "HCCL", "npu"),
        r"VLLM_ASCEND_\w+|\bASCEND_\w*VISIBLE_DEVICES|vllm[-_]ascend|\bHCCL_\w+|device[\"']?\s*[=:]\s*[\"']?npu\b",
    ),
    (
        ROCM, ("ROCM", "rocm", "HIP_"),
        r"VLLM_ROCM_\w+|\bHIP_VISIBLE_DEVICES|\brocm/vllm|vllm-openai-rocm|\bvllm-rocm|PYTORCH_ROCM_ARCH",
    ),
)  # fmt: skip
_COMMENT = r"\s*(#|//)"


@dataclass(frozen=True)
class Device:
    """The machine, and the words and line that tell it."""

    machine: Machine
    clue: str
    line: int

    def said(self, path: str) -> str:
        """For a report."""
        return (
            f"{path}:{self.line}: {self.clue} is of {self.machine.name}: what vLLM's platform for it decides "
            "is not read here"
        )


def device_of(text: str) -> Device | None:
    """The first device that a file names outside of its comments; None where it names none."""
    for machine, words, pattern in _CLUES:
        for match in re.finditer(pattern, text) if any(word in text for word in words) else ():
            begun = text.rfind("\n", 0, match.start()) + 1
            if not re.match(_COMMENT, text[begun : match.start()]):
                return Device(machine, match.group(), text.count("\n", 0, begun) + 1)
    return None
