"""A machine with an NVIDIA driver, as the management library would describe it: install() puts it in its place."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from rlaudit.engines.hardware.nvidia_driver import MIB

H100, A100, T400 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "NVIDIA T400 4GB"
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED


@dataclass(frozen=True)
class FakeGpu:
    """One GPU. `mig`: it is split into instances; `fault`: the code of every answer.

    `used_mib` is read from front to back, one figure per question, the last for ever; `memory_mib` None: not supported.
    """

    uuid: str
    name: str = H100
    memory_mib: int | None = 81_559
    mig: bool = False
    fault: int | None = None
    minor: int | None = None
    used_mib: Sequence[int] = (0,)


class FakeNvml:
    """The library's functions over GPUs that are described; what else it has (errors, constants) is the real one's."""

    def __init__(
        self, *gpus: FakeGpu, start_fault: int | None = None, cuda: int = 12080, driver: str | bytes = b"570.1"
    ) -> None:
        self.gpus, self.start_fault, self.cuda, self.driver = gpus, start_fault, cuda, driver
        self.sessions = 0
        self._used = {gpu.uuid: list(gpu.used_mib) for gpu in gpus}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("nvml"):
            raise AssertionError(f"nobody taught the stand-in {name}")
        return getattr(pynvml, name)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "FakeNvml":
        monkeypatch.setitem(sys.modules, "pynvml", self)
        return self

    def nvmlInit(self) -> None:
        if self.start_fault is not None:
            raise pynvml.NVMLError(self.start_fault)
        self.sessions += 1

    def nvmlShutdown(self) -> None:
        self.sessions -= 1

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        fault = self.gpus[index].fault
        if fault is not None:
            raise pynvml.NVMLError(fault)
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        for gpu in self.gpus:
            if uuid == gpu.uuid:
                return gpu
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetUUID(self, handle: FakeGpu) -> str:
        return handle.uuid

    def nvmlDeviceGetName(self, handle: FakeGpu) -> str:
        return handle.name

    def nvmlDeviceGetMinorNumber(self, handle: FakeGpu) -> int:
        if handle.minor is None:
            raise pynvml.NVMLError(NOT_SUPPORTED)
        return handle.minor

    def nvmlDeviceGetCudaComputeCapability(self, handle: FakeGpu) -> tuple[int, int]:
        return (8, 0) if handle.name == A100 else (9, 0)

    def nvmlDeviceGetMemoryInfo(self, handle: FakeGpu) -> Any:
        if handle.memory_mib is None:
            raise pynvml.NVMLError(NOT_SUPPORTED)
        used = self._used[handle.uuid]
        return SimpleNamespace(total=handle.memory_mib * MIB, used=(used.pop(0) if len(used) > 1 else used[0]) * MIB)

    def nvmlDeviceGetMigMode(self, handle: FakeGpu) -> tuple[int, int]:
        if not handle.mig:
            raise pynvml.NVMLError(NOT_SUPPORTED)
        return pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE
