"""This machine, as vLLM's own decisions depend on it."""

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.vllm.machine import Machine, machine_named


def machine_of(accelerator: Accelerator) -> Machine:
    """The machine that this one's engines run on."""
    if accelerator.kind == "cpu":
        return machine_named("cpu")
    gpu = accelerator.devices[0]
    return Machine(gpu=gpu.capability, memory_gib=gpu.memory_mib / 1024, name=gpu.name)
