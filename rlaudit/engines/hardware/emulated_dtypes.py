"""Dtypes that a processor only emulates: right in their numbers, and far too slow to sample with.

A 135 M model samples 4 to 5 tokens/s in bfloat16 on 2 cores of an AMD EPYC with AVX2 (vLLM 0.18.1, 2026-11-22), and 45
to 63 tokens/s in float32.
"""

from collections.abc import Mapping

from rlaudit.engines.hardware.accelerator import Accelerator

# What products ask for in oneDNN (`mkldnn_bf16_device_check` of PyTorch); without, PyTorch's own loops remain.
INSTRUCTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "bfloat16": {"x86": ("avx512bw", "avx512vl", "avx512dq"), "arm": ("bf16",)},
    "float16": {"x86": ("avx512_fp16",), "arm": ("asimdhp",)},
}


def emulated(dtype: str, accelerator: Accelerator) -> bool:
    """Return whether this machine's processor is what computes, and has no instructions for `dtype`.

    A processor that says nothing of its instructions is taken to have them.
    """
    present = accelerator.instruction_sets
    wanted = INSTRUCTIONS.get(dtype)
    if accelerator.kind != "cpu" or not present or wanted is None:
        return False
    family = "arm" if "asimd" in present else "x86"
    return not all(instruction in present for instruction in wanted[family])
