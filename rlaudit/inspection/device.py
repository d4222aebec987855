"""The device that a file is written for, where it says so: variables, images and options of Ascend NPUs and AMD GPUs,
or the names of the file and its folders.

What vLLM's plug-in for such a device decides is not read here; a default of CUDA must not be taken for it.
"""

import re
from dataclasses import dataclass
from pathlib import PurePath

from rlaudit.vllm.machine import NPU, ROCM, Machine

# After a variable that scripts for every device ask for, save or take away: that it gets a value.
_SET = r"(?=(?:[\"']\]?)?\s*(?:=(?!=)|:(?!-))\s*[\"']?[\w$])"
# Words without which there is no clue, and the clues; those are compiled where a word is there, which is seldom.
_CLUES = (
    (
        NPU, ("ASCEND", "ascend", "HCCL", "npu", "NPU"),
        rf"VLLM_ASCEND_\w+|\bASCEND_\w*VISIBLE_DEVICES{_SET}|(?<!is_)vllm[-_]ascend|\bHCCL_\w+|device[\"']?\s*[=:]\s*[\"']?npu\b"
        r"|\btorch_npu\b|\bnpu-smi\b|\bascend-toolkit\b|[\"']NPU[\"']",
    ),
    (
        ROCM, ("ROCM", "rocm", "HIP_", "MI2", "MI3", "mi2", "mi3"),
        rf"VLLM_ROCM_\w+|\bHIP_VISIBLE_DEVICES{_SET}|\brocm/[a-z]|vllm-openai-rocm|\bvllm-rocm|PYTORCH_ROCM_ARCH|/opt/rocm"
        r"|\brocm-smi\b|\b(?:MI|mi)[23]\d\d[AaXx]?\b",
    ),
)  # fmt: skip
_NAMES = {"npu": NPU, "ascend": NPU, "rocm": ROCM, "amd": ROCM}
# A folder above these may be anybody's: a user's, a company's.
_FOLDERS = 2
# What a line does not say of the machine: its comment, an import that a Python program makes under a condition, and a
# variable that it takes away, which programs for every device do.
_ASIDE = r"(?:.*\s)?(?:#|//)|\s+(?:from|import)\s|.*\benviron\.pop\(\s*[\"']$|\s*del\s.*\benviron\b|\s*unset\s"


@dataclass(frozen=True)
class Device:
    """The machine, and what tells it: words, and the line they stand in; 0 for a word of the path."""

    machine: Machine
    clue: str
    line: int

    def said(self, path: str) -> str:
        """For a report."""
        where = f"{path}:{self.line}: {self.clue}" if self.line else f"{path}: {self.clue} in its name or folder"
        return f"{where} is of {self.machine.name}: what vLLM's platform for it decides is not read here"


def device_of(text: str, path: str = "") -> Device | None:
    """The first device that a file names outside of its comments, else the one of its path; None where none does."""
    for machine, words, pattern in _CLUES:
        for match in re.finditer(pattern, text) if any(word in text for word in words) else ():
            begun = text.rfind("\n", 0, match.start()) + 1
            if not re.match(_ASIDE, text[begun : match.start()]):
                return Device(machine, match.group(), text.count("\n", 0, begun) + 1)
    names = PurePath(path).parts[-1 - _FOLDERS :]
    told = (word for name in reversed(names) for word in re.findall(r"[a-z]+", name.lower()) if word in _NAMES)
    return next((Device(_NAMES[word], word, 0) for word in told), None)
