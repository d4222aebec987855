"""A processor emulates the dtypes that it has no instructions for; a GPU emulates none."""

import pytest

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.dtypes import emulated

AVX2 = ("avx", "avx2", "f16c", "fma")
SKYLAKE = (*AVX2, "avx512bw", "avx512dq", "avx512f", "avx512vl")
GRAVITON_2 = ("asimd", "asimdhp")


def processor(*instructions: str) -> Accelerator:
    return Accelerator("cpu", "a processor", (), "", 2, 24 * 1024, instruction_sets=instructions)


@pytest.mark.parametrize(
    ("instructions", "dtype", "expected"),
    [
        (AVX2, "bfloat16", True),
        (AVX2, "float32", False),
        (SKYLAKE, "bfloat16", False),
        (SKYLAKE, "float16", True),
        (GRAVITON_2, "bfloat16", True),
        (GRAVITON_2, "float16", False),
        ((*GRAVITON_2, "bf16"), "bfloat16", False),
    ],
)
def test_a_dtype_without_instructions_is_emulated(instructions: tuple[str, ...], dtype: str, expected: bool) -> None:
    assert emulated(dtype, processor(*instructions)) is expected


def test_a_processor_of_unknown_instructions_and_a_gpu_emulate_nothing() -> None:
    assert not emulated("bfloat16", processor())
    assert not emulated("bfloat16", Accelerator("cuda", "H100", (), "580", 2, 1, instruction_sets=AVX2))
