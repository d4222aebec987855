"""The device that a file is written for, where it says so: variables, images and options of Ascend NPUs and AMD GPUs.

What vLLM's plug-in for such a device decides is not read here; a default of CUDA must not be taken for it.
Source: vllm-ascend 0.18 (VLLM_ASCEND_*), vllm/platforms/rocm.py (0.18.1), images of both projects.
"""

import re
from dataclasses import dataclass

from rlaudit.vllm.machine import NPU, ROCM, Machine

_CLUES = (
    (
        NPU,
        re.compile(
            r"VLLM_ASCEND_\w|\bASCEND_\w*VISIBLE_DEVICES|vllm[-_]ascend|\bHCCL_\w|device[\"']?\s*[=:]\s*[\"']?npu\b"
        ),
    ),
    (
        ROCM,
        re.compile(r"VLLM_ROCM_\w|\bHIP_VISIBLE_DEVICES|\brocm/vllm|vllm-openai-rocm|\bvllm-rocm|PYTORCH_ROCM_ARCH"),
    ),
)
_COMMENT = re.compile(r"\s*(#|//)")


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
    for machine, pattern in _CLUES:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start())
            if not _COMMENT.match(text, text.rfind("\n", 0, match.start()) + 1):
                return Device(machine, match.group(), line + 1)
    return None
