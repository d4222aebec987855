"""Kernels whose result does not depend on what else is in the batch (`VLLM_BATCH_INVARIANT=1`). CUDA only.

A started engine is no proof. Every arm generates the same small request alone and among others; on means that its
tokens and logprobs agree bit for bit. A difference between on and off need not come from batching alone, because the
variable changes more than the kernels of matrix products. It names an attention backend if the release wants one:
FLASH_ATTN, or TRITON_ATTN for float32, even if the default is another, as on Blackwell. It takes other RMSNorm, softmax
and bmm kernels, and pins NCCL. It turns off custom all-reduce (0.32.0 keeps a one-stage one), cascade attention,
ahead-of-time compilation, TF32 and reduced-precision sums. The report says per arm what was loaded.

It need not hold everywhere. 0.18.1 replaces matrix products on compute capability 8.0, 8.9 and 10.x only. 8.6 (A10,
A40, RTX 3090) takes the branch meant for Hopper, which relies on a cuBLAS workspace. With tensor parallelism the sum
over workers is fused with RMSNorm in some releases and depends on the batch (vllm#51290). CPUs cannot run it, and
releases before 0.11.2 have never heard of it. Source: vllm/model_executor/layers/batch_invariant.py (0.11.2 to 0.31;
0.18.1:937-1080), vllm/model_executor/determinism (0.32), vllm/config/parallel.py (0.26.0:975).
"""

import re
from dataclasses import replace

from packaging.version import Version

from rlaudit.laboratory.factor import ArmTrace, Factor, Move, Observation
from rlaudit.laboratory.treatment import Requirement, Treatment
from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.vllm.batch_invariant_backends import accepted_backends

VARIABLE = "VLLM_BATCH_INVARIANT"
MODULES = ("vllm.model_executor.layers.batch_invariant", "vllm.model_executor.determinism")
# FLASH_ATTN has kernels for 16-bit numbers only (vllm/v1/attention/backends/flash_attn.py, 0.18.1:66).
FOR_HALF_PRECISION, FOR_FLOAT32 = "FLASH_ATTN", "TRITON_ATTN"
FLOAT32 = ("float32", "float")


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` sets the variable and, on CUDA, an attention backend if the release requires one; `off` sets it to 0."""
    if level == "off":
        return treatment.with_variables(**{VARIABLE: "0"})
    wanted = FOR_FLOAT32 if treatment.engine_args.get("dtype") in FLOAT32 else FOR_HALF_PRECISION
    invariant = replace(
        treatment.with_variables(**{VARIABLE: "1"}),
        requires=(*treatment.requires, Requirement("batch-invariance", modules=MODULES)),
    )
    # A release that accepts no backend for this dtype refuses to start with its own message.
    if wanted not in accepted_backends(Version(treatment.version)):
        return invariant
    return replace(
        invariant,
        cuda_engine_args={"attention_backend": wanted, **treatment.cuda_engine_args},
        cuda_variables={"VLLM_ATTENTION_BACKEND": wanted, **treatment.cuda_variables},
    )


def observe(trace: ArmTrace) -> Observation:
    """Read the level from the same request alone and in a batch, bit by bit."""
    is_requested = trace.treatment.variables.get(VARIABLE) == "1"
    variable = f"{VARIABLE}=1" if is_requested else f"{VARIABLE} is not set"
    probe = trace.batch_probe
    if "identical" not in probe:
        return Observation(None, f"{variable}; {probe.get('error', 'nothing was generated alone and in a batch')}")
    among = f"{probe['tokens']} tokens alone and among {probe['requests']} requests"
    workers = trace.resolved.get("tensor_parallel_size") or 1
    split = f"; with {workers} tensor-parallel workers their sums take part" if workers > 1 else ""
    if not probe["identical"]:
        return Observation(
            "off",
            f"{variable}; {among} differ from token {probe['differs_at']} on, by {probe['by']:.1e} nats{split}",
        )
    if is_requested:
        return Observation("on", f"{variable}; {among} agree bit for bit{split}")
    return Observation(
        None, f"{variable}, and yet {among} agree bit for bit, so there is no dependence to remove{split}"
    )


def move(audit: Audit, setting: str) -> Move:
    """Try on, unless the config requests it already."""
    set_to = audit.after.variable(setting)
    return Move("on" if set_to is None or set_to.value in {None, "0", False} else "off")


FACTOR = Factor(
    name="batch-invariance",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    # The last one: a backend that is named and cannot serve this model or GPU (vllm/platforms/cuda.py, 0.18.1:253).
    refusal=re.compile(r"batch.?invarian|determinism|selected backend \S+ is not valid", re.IGNORECASE),
    setting=VARIABLE,
    move=move,
)
