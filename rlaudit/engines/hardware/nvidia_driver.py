"""What the NVIDIA driver reports of the GPUs of this machine, through its management library (NVML).

NVML needs neither CUDA nor torch and does not look at `CUDA_VISIBLE_DEVICES`. It numbers GPUs by PCI bus, as CUDA does
under `CUDA_DEVICE_ORDER=PCI_BUS_ID`, but it may count GPUs that this process may not use.
Source: NVIDIA, "NVML API Reference".
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlaudit.engines.hardware.driver import offered_cuda

MIB = 1024 * 1024


@dataclass(frozen=True)
class Device:
    """One GPU."""

    # The driver's number of the GPU.
    index: int
    uuid: str
    name: str
    # In total.
    memory_mib: int
    # As in sm90.
    capability: str
    # Whether CUDA's number may differ from the driver's.
    only_by_uuid: bool = False


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver shows it."""

    index: int
    uuid: str
    name: str
    # None if it cannot be used.
    device: Device | None = None
    # Whether it is split into instances.
    mig: bool = False
    # Whether this process may not open it.
    forbidden: bool = False
    # The driver's reason why it does not answer.
    trouble: str | None = None


@dataclass(frozen=True)
class Driver:
    """The NVIDIA driver and its GPUs."""

    version: str
    # The newest CUDA that it offers, as `12.8`; empty if unknown.
    cuda: str
    gpus: tuple[Gpu, ...]


@contextmanager
def nvml_session() -> Iterator[Any]:
    """Start the management library, and end it afterwards. Raises pynvml.NVMLError if it cannot be started."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def read_driver(host_memory_mib: int, root: Path) -> Driver:
    """Return the driver and its GPUs. Raises pynvml.NVMLError if the driver does not answer at all."""
    with nvml_session() as nvml:
        version = _text(nvml.nvmlSystemGetDriverVersion())
        gpus = tuple(_gpu(nvml, index, host_memory_mib, root) for index in range(nvml.nvmlDeviceGetCount()))
        return Driver(version, _newest_cuda(nvml), gpus)


def _gpu(nvml: Any, index: int, host_memory_mib: int, root: Path) -> Gpu:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid, name = _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle))
        if not _may_open(nvml, handle, root):
            return Gpu(index, uuid, name, forbidden=True)
        if _mig_is_on(nvml, handle):
            return Gpu(index, uuid, name, mig=True)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        memory_mib = _total_memory_mib(nvml, handle, host_memory_mib)
        return Gpu(index, uuid, name, Device(index, uuid, name, memory_mib, f"sm{major}{minor}"))
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_NO_PERMISSION:
            return Gpu(index, "", "", forbidden=True)
        return Gpu(index, "", "", trouble=str(error))


def _total_memory_mib(nvml: Any, handle: Any, host_memory_mib: int) -> int:
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total) // MIB
    except nvml.NVMLError as error:
        # GB10 shares the host's memory.
        if error.value != nvml.NVML_ERROR_NOT_SUPPORTED:
            raise
        return host_memory_mib


def _mig_is_on(nvml: Any, handle: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError as error:
        # A GPU without MIG, and a driver from before it (R450).
        if error.value not in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            raise
        return False
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)


def _may_open(nvml: Any, handle: Any, root: Path) -> bool:
    """Return whether CUDA can open the GPU, by opening it: a device cgroup does not show in the file's mode."""
    try:
        minor = nvml.nvmlDeviceGetMinorNumber(handle)
    except nvml.NVMLError:
        return True
    node = root / "dev" / f"nvidia{minor}"
    if not node.exists():
        # WSL has no such nodes at all; a container with one GPU has one.
        return not any((root / "dev").glob("nvidia[0-9]*"))
    try:
        os.close(os.open(node, os.O_RDWR))
    except OSError as error:
        return error.errno not in (errno.EPERM, errno.EACCES)
    return True


def _newest_cuda(nvml: Any) -> str:
    try:
        reported = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
    except nvml.NVMLError:
        reported = 0
    return offered_cuda(reported)


def _text(value: str | bytes) -> str:
    """Return text: older releases of the library's bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value
