"""Kernels whose result does not depend on what else is in the batch (`VLLM_BATCH_INVARIANT=1`). CUDA only.

Releases 0.12 to 0.19 also want the attention backend named, by environment variable up to 0.12 and by engine argument
from 0.13 on; naming it is harmless later. CPUs cannot run it, and releases before 0.11.2 have never heard of it.
Source: vllm/model_executor/layers/batch_invariant.py (0.11.2 to 0.31), vllm/model_executor/determinism (0.32).
"""

import re
from dataclasses import replace

from rlaudit.experiment.factor import ArmTrace, Factor, Observation
from rlaudit.experiment.treatment import Requirement, Treatment
from rlaudit.layers import Layer

VARIABLE = "VLLM_BATCH_INVARIANT"
MODULES = ("vllm.model_executor.layers.batch_invariant", "vllm.model_executor.determinism")
BACKEND = "FLASH_ATTN"


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` sets the variable and, on CUDA, names an attention backend that supports it; `off` sets it to 0."""
    if level == "off":
        return treatment.with_variables(**{VARIABLE: "0"})
    return replace(
        treatment.with_variables(**{VARIABLE: "1"}),
        cuda_engine_args={"attention_backend": BACKEND, **treatment.cuda_engine_args},
        cuda_variables={"VLLM_ATTENTION_BACKEND": BACKEND, **treatment.cuda_variables},
        requires=(*treatment.requires, Requirement("batch-invariance", modules=MODULES)),
    )


def observe(trace: ArmTrace) -> Observation:
    """A CUDA engine that started with the variable set has its kernels in place: it refuses to start otherwise."""
    if trace.treatment.variables.get(VARIABLE) != "1":
        return Observation("off", f"{VARIABLE} is not set")
    if trace.resolved.get("device") != "cuda":
        return Observation(None, f"{VARIABLE}=1, but only CUDA engines have such kernels")
    return Observation("on", f"the engine started with {VARIABLE}=1")


FACTOR = Factor(
    name="batch-invariance",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    refusal=re.compile(r"batch.?invarian|determinism", re.IGNORECASE),
    setting=VARIABLE,
)
