"""The accelerators of this machine, as far as an engine would see them.

Asks NVIDIA's management library, which needs neither CUDA nor torch. A machine without a driver is a CPU
machine, not an error. `CUDA_VISIBLE_DEVICES` is honoured as CUDA does: indexes or UUIDs, in the order given,
up to the first one that does not exist; the empty string hides all.
"""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

MIB = 1024 * 1024


@dataclass(frozen=True)
class Device:
    """One GPU. `index` is the driver's own, `memory_mib` its total memory, `capability` as in sm90."""

    index: int
    uuid: str
    name: str
    memory_mib: int
    capability: str


@dataclass(frozen=True)
class Accelerator:
    """What engines run on here: GPUs, or the processor.

    `name` is the device's or processor's model, `driver` the NVIDIA driver's version or empty; `cores` and
    `memory_mib` are the host's.
    """

    kind: Literal["cuda", "cpu"]
    name: str
    devices: tuple[Device, ...]
    driver: str
    cores: int
    memory_mib: int


def detect(environ: Mapping[str, str] | None = None) -> Accelerator:
    """The accelerator of this machine. Never raises: no driver, or all GPUs hidden, means CPU."""
    environ = os.environ if environ is None else environ
    devices, driver = _visible_gpus(environ.get("CUDA_VISIBLE_DEVICES"))
    name = devices[0].name if devices else _processor_name()
    return Accelerator("cuda" if devices else "cpu", name, devices, driver, _cores(), _memory_mib())


def used_memory_mib(accelerator: Accelerator) -> tuple[int, ...]:
    """Memory in use per GPU, in MiB, by anybody; empty on a CPU machine."""
    with _Nvml() as nvml:
        if nvml is None:
            return ()
        handles = [nvml.nvmlDeviceGetHandleByUUID(device.uuid) for device in accelerator.devices]
        return tuple(int(nvml.nvmlDeviceGetMemoryInfo(handle).used) // MIB for handle in handles)


@dataclass(frozen=True)
class MemoryWait:
    """Whether the memory came back, and how much more than the baseline is still held, per GPU in MiB."""

    free: bool
    still_held_mib: tuple[int, ...]

    def __bool__(self) -> bool:
        return self.free


def wait_until_memory_is_free(
    accelerator: Accelerator,
    baseline_mib: Sequence[int],
    timeout_seconds: float,
    tolerance_mib: int = 256,
    poll_seconds: float = 0.5,
) -> MemoryWait:
    """Wait until every GPU uses no more than before the last engine started (`used_memory_mib` then).

    The driver frees an ended process's memory a little later, and a next engine that starts earlier sizes its
    KV cache by what it finds. On a CPU machine this returns at once.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        used = used_memory_mib(accelerator)
        held = tuple(max(0, now - before) for now, before in zip(used, baseline_mib, strict=False))
        if all(more <= tolerance_mib for more in held):
            return MemoryWait(True, held)
        if time.monotonic() >= deadline:
            return MemoryWait(False, held)
        time.sleep(poll_seconds)


class _Nvml:
    """The management library between init and shutdown; None where there is no driver."""

    def __enter__(self) -> Any:
        try:
            import pynvml

            pynvml.nvmlInit()
        # pynvml raises its own family of errors, and OSError for a library that is there and does not load.
        except Exception:
            self._nvml = None
        else:
            self._nvml = pynvml
        return self._nvml

    def __exit__(self, *_: object) -> None:
        if self._nvml is not None:
            self._nvml.nvmlShutdown()


def _visible_gpus(visible: str | None) -> tuple[tuple[Device, ...], str]:
    try:
        with _Nvml() as nvml:
            if nvml is None:
                return (), ""
            driver = _text(nvml.nvmlSystemGetDriverVersion())
            gpus = [_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
    # A driver that answers the first question and not the next (a GPU that fell off the bus) hides its GPUs.
    except Exception:
        return (), ""
    return (tuple(gpus) if visible is None else _selected(gpus, visible)), driver


def _device(nvml: Any, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total) // MIB
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    name, uuid = _text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlDeviceGetUUID(handle))
    return Device(index, uuid, name, memory, f"sm{major}{minor}")


def _selected(gpus: list[Device], visible: str) -> tuple[Device, ...]:
    chosen: list[Device] = []
    for word in (part.strip() for part in visible.split(",")):
        if word.isdigit():
            match = [gpu for gpu in gpus if gpu.index == int(word)]
        else:
            # CUDA takes any prefix of a UUID that is unique.
            match = [gpu for gpu in gpus if word and gpu.uuid.startswith(word)]
        if len(match) != 1:
            break
        chosen += match
    return tuple(chosen)


def _text(value: str | bytes) -> str:
    """Older releases of the library's bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_mib() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
    except (OSError, ValueError):
        return 0
