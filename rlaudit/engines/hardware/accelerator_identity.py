"""The facts about a machine that decide a result: the part of a cell's identity that is not the recipe's.

A run can be continued on another GPU of the same model: which GPU of a node it is, how many others the node has, and
the host change no logprob. How many GPUs an engine uses is in its arguments.
"""

import os
from collections.abc import Mapping
from typing import Any

from rlaudit.engines.cells.inherited_variables import deciding
from rlaudit.engines.hardware.accelerator import Accelerator

# Memory decides how many blocks the KV cache has, and vLLM's limits on a batch. Cards of one name are sold with 8 or
# 12 GiB; some hundred MiB depend on error correction and the driver, and must decide nothing.
MEMORY_STEP_MIB = 4096


def accelerator_identity(accelerator: Accelerator, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return what a cell's key depends on: device model, driver, and the shell's variables that change numbers."""
    return {
        "kind": accelerator.kind,
        **(_gpu_identity(accelerator) if accelerator.kind == "cuda" else _processor_identity(accelerator)),
        "variables": deciding(accelerator.kind, environ),
    }


def _gpu_identity(accelerator: Accelerator) -> dict[str, Any]:
    kinds = {
        (device.name, device.capability, round(device.memory_mib / MEMORY_STEP_MIB)) for device in accelerator.devices
    }
    return {
        "gpus": [
            {"name": name, "capability": capability, "memory_steps": steps} for name, capability, steps in sorted(kinds)
        ],
        # It compiles PTX at run time, and chooses the kernels of its libraries.
        "driver": accelerator.driver,
    }


def _processor_identity(accelerator: Accelerator) -> dict[str, Any]:
    return {
        "name": accelerator.name,
        # A virtual machine may hide instructions of its processor, and kernels are chosen by the visible ones.
        "instruction_sets": list(accelerator.instruction_sets),
        # OpenMP splits a sum over as many threads as cores: another number of threads is another order of summation.
        "threads": accelerator.cores,
    }
