"""How a machine computes in a dtype: some processors only emulate it, and float32 on CUDA is TF32 in part.

An emulated dtype gives the right numbers, but is far too slow to sample with: a 135 M model samples 4 to 5 tokens/s in
bfloat16 on 2 cores of an AMD EPYC with AVX2 (vLLM 0.18.1, 2026-11-22), and 45 to 63 tokens/s in float32.

TF32 has ten bits of mantissa. vLLM's V1 engine serves float32 with Triton attention, whose `tl.dot` is TF32 by default;
V0 does the same to prompts whose beginning is cached. vLLM and torch leave cuBLAS at float32 unless a variable of the
shell says otherwise, as in NVIDIA's images; a recipe can still set TF32 with VLLM_FLOAT32_MATMUL_PRECISION.
"""

from collections.abc import Mapping

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.files.cache_folder import cache_folder

# What oneDNN's products require (`mkldnn_bf16_device_check` of PyTorch); otherwise PyTorch's own loops run.
INSTRUCTIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "bfloat16": {"x86": ("avx512bw", "avx512vl", "avx512dq"), "arm": ("bf16",)},
    "float16": {"x86": ("avx512_fp16",), "arm": ("asimdhp",)},
}


def emulated(dtype: str, accelerator: Accelerator) -> bool:
    """Return whether engines run on a processor without instructions for `dtype`.

    A processor whose instructions are unknown counts as having them.
    """
    present = accelerator.instruction_sets
    wanted = INSTRUCTIONS.get(dtype)
    if accelerator.kind != "cpu" or not present or wanted is None:
        return False
    family = "arm" if "asimd" in present else "x86"
    return not all(instruction in present for instruction in wanted[family])


# torch, aten/src/ATen/Context.h: float32_matmul_precision.
IEEE_PRODUCTS = {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0"}
# triton 3.2.0 and 3.6.0: language/core.py (dot), backends/nvidia/compiler.py (default_dot_input_precision).
IEEE_KERNELS = {"TRITON_F32_DEFAULT": "ieee"}
FLOAT32 = frozenset({"float32", "float"})


def ieee_float32(device: str, dtype: object, float32_head: bool = False) -> dict[str, str]:
    """Return the variables of an engine or a trainer of this dtype on `device`, cuda or cpu.

    A float32 head is one product: the kernels of a bfloat16 body must not change, so that only the head differs.
    """
    if device != "cuda":
        return {}
    if str(dtype) in FLOAT32:
        return {**IEEE_PRODUCTS, **IEEE_KERNELS}
    return dict(IEEE_PRODUCTS) if float32_head else {}


def kernel_cache(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a separate folder for kernels that are compiled under such variables.

    triton 3.2.0, of vLLM 0.8.5, ignores the precision when it looks a compiled kernel up; 3.6.0 does not.
    """
    if not IEEE_KERNELS.items() <= variables.items():
        return {}
    return {"TRITON_CACHE_DIR": str(cache_folder() / "triton-ieee")}
