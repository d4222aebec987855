"""What holds the GPUs' memory: the run's engines that are ending, or other programs.

The driver frees an ended process's memory with a delay. An engine that starts earlier makes its KV cache smaller, or
refuses to start.
"""

import time
from typing import Any

from rlaudit.engines.hardware.nvidia_driver import MIB, Device, nvml_session

# An engine that has ended leaves at most a part of the driver's bookkeeping.
TOLERANCE_MIB = 256
# vLLM takes 0.9 of a GPU by default: memory of others matters well before that tenth is full.
SHARE_THAT_MATTERS = 0.05


class GpuMemory:
    """The memory in use on the GPUs of a run, compared with that before its first engine started."""

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self._devices = devices
        self._others_mib = used_memory_mib(devices)

    def wait_until_free(self, timeout_seconds: float, poll_seconds: float = 0.5) -> int:
        """Wait until no GPU holds more than before, and return the MiB in excess at the end, 0 if none.

        The excess then counts as other programs' and is not waited for again. Returns at once without GPUs, and for one
        that shares the host's memory.
        """
        deadline = time.monotonic() + timeout_seconds
        while True:
            used = used_memory_mib(self._devices)
            excess = max((now - before for now, before in zip(used, self._others_mib, strict=True)), default=0)
            if excess <= TOLERANCE_MIB:
                return 0
            if time.monotonic() >= deadline:
                self._others_mib = used
                return excess
            time.sleep(poll_seconds)

    def held_by_others(self) -> str | None:
        """Return the memory that others hold now, in words; None if it is too little to matter."""
        usages = [
            f"{used} of {device.memory_mib} MiB of GPU {device.index}"
            for device, used in zip(self._devices, used_memory_mib(self._devices), strict=True)
            if used > SHARE_THAT_MATTERS * device.memory_mib
        ]
        return ", ".join(usages) or None


def used_memory_mib(devices: tuple[Device, ...]) -> tuple[int, ...]:
    """Return the memory in use per GPU, in MiB, by any process; 0 for a GPU that shares the host's."""
    if not devices:
        return ()
    with nvml_session() as nvml:
        return tuple(_used_memory_mib(nvml, device) for device in devices)


def _used_memory_mib(nvml: Any, device: Device) -> int:
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(device.uuid)
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).used) // MIB
    except nvml.NVMLError:
        return 0
