"""The accelerator of this machine: the GPUs that an engine would see, or the processor.

A machine with a GPU is never treated as a CPU machine: if its GPUs cannot be used, or it is unknown which are meant,
the audit ends with the reason. The processor is used only without a GPU, or if the user requests it. Signs of a GPU
that need no library (device nodes, the PCI bus, and the files of WSL) distinguish a machine without a GPU from one
whose driver does not answer.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlaudit.engines.hardware.nvidia_driver import MIB, Device, Driver, read_driver
from rlaudit.engines.hardware.visible_gpus import DO_WITHOUT, visible_gpus
from rlaudit.errors import NotFinished
from rlaudit.vllm.machine import Machine, machine_named
from rlaudit.vllm.runs_here import glibc_here

NVIDIA, DISPLAY_CLASS = "0x10de", "0x03"
# The last two are those of Jetson boards.
NVIDIA_NODES = ("nvidia[0-9]*", "nvidiactl", "nvgpu*", "nvhost-gpu")
# Beginnings of the flags in /proc/cpuinfo that select numeric kernels, by the name of the line on x86-64 and on ARM.
INSTRUCTION_SETS = {
    "flags": ("sse4", "avx", "fma", "f16c", "amx"),
    "Features": ("asimd", "sve", "sme", "bf16", "i8mm"),
}


@dataclass(frozen=True)
class Accelerator:
    """What engines run on here: GPUs, or the processor."""

    kind: Literal["cuda", "cpu"]
    # The model of the device or processor.
    name: str
    devices: tuple[Device, ...]
    # The NVIDIA driver's version; empty on a CPU.
    driver: str
    # Of the host.
    cores: int
    memory_mib: int
    # The newest CUDA that the driver offers, as `12.8`; empty on a CPU.
    driver_cuda: str = ""
    # Of the host.
    instruction_sets: tuple[str, ...] = ()
    # Of the host, as `2.36`; empty if its C library is another one.
    glibc: str = ""


def detect(cpu: bool = False, environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> Accelerator:
    """Return the accelerator of this machine; the processor if `cpu`. root: of the file system.

    Raises NotFinished if the machine has a GPU that cannot be used, is not supported, or is hidden.
    """
    driver = None if cpu else _driver(root)
    cores, memory_mib, instructions = _cores(), _memory_mib(), _instruction_sets()
    if driver is None:
        return Accelerator("cpu", _processor_name(), (), "", cores, memory_mib, "", instructions, glibc_here())
    devices = visible_gpus(driver.gpus, os.environ if environ is None else environ)
    name = devices[0].name
    return Accelerator(
        "cuda", name, devices, driver.version, cores, memory_mib, driver.cuda, instructions, glibc_here()
    )


def _driver(root: Path) -> Driver | None:
    """Return the NVIDIA driver and its GPUs; None on a machine without a GPU."""
    import pynvml

    sign = _nvidia_sign(root)
    try:
        driver = read_driver(_memory_mib(), root)
    except pynvml.NVMLError as error:
        absent = error.value in (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        if not absent or sign is not None:
            raise _unusable(error, sign, root) from error
    else:
        if driver.gpus:
            return driver
        if sign is not None:
            raise NotFinished(
                f"there is an NVIDIA GPU here ({sign}), and its driver shows this process none",
                f"ask the scheduler or the container for a GPU; {DO_WITHOUT}",
            )
    amd = _amd_sign(root)
    if amd is not None:
        raise NotFinished(f"this machine has an AMD GPU ({amd}), and rlaudit runs engines on CUDA only", DO_WITHOUT)
    return None


def _unusable(error: Any, sign: str | None, root: Path) -> NotFinished:
    """Return an error with the reason why the driver does not answer."""
    import pynvml

    if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        loaded = _read(root / "proc/driver/nvidia/version").partition("\n")[0]
        return NotFinished(
            "the NVIDIA driver's library and its kernel module are of different versions"
            + (f"; loaded is {loaded}" if loaded else ""),
            "restart the machine, or the container, after an update of the driver; " + DO_WITHOUT,
        )
    if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return NotFinished(
            f"there is an NVIDIA GPU here ({sign}) and no libnvidia-ml.so.1 to ask it with",
            "install the driver, give the container its libraries (NVIDIA_DRIVER_CAPABILITIES=compute,utility), or put "
            f"/usr/lib/wsl/lib on LD_LIBRARY_PATH under WSL; {DO_WITHOUT}",
        )
    shown_by = "" if sign is None else f" ({sign})"
    return NotFinished(
        f"the NVIDIA driver does not answer{shown_by}: {error}", f"nvidia-smi has to list the GPU first; {DO_WITHOUT}"
    )


def _nvidia_sign(root: Path) -> str | None:
    """Return the evidence for an NVIDIA GPU, in words; None without any."""
    nodes = sorted(path.name for pattern in NVIDIA_NODES for path in (root / "dev").glob(pattern))
    if nodes:
        return f"/dev/{nodes[0]}"
    # In WSL every GPU is /dev/dxg; only NVIDIA's have these libraries.
    if (root / "dev/dxg").exists() and any((root / "usr/lib/wsl/lib").glob("libcuda.so*")):
        return "/dev/dxg and /usr/lib/wsl/lib/libcuda.so"
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        if _read(device / "vendor") == NVIDIA and _read(device / "class").startswith(DISPLAY_CLASS):
            return f"PCI device {device.name}"
    return None


def _amd_sign(root: Path) -> str | None:
    """Return the evidence for a GPU of the amdgpu driver, in words; None without any."""
    if (root / "dev/kfd").exists():
        return "/dev/kfd"
    for device in sorted((root / "sys/bus/pci/drivers/amdgpu").glob("*:*")):
        return f"PCI device {device.name}, driver amdgpu"
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _processor_name() -> str:
    for line in _cpuinfo():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_mib() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
    except (OSError, ValueError):
        return 0


def _instruction_sets() -> tuple[str, ...]:
    for line in _cpuinfo():
        name, _, flags = line.partition(":")
        beginnings = INSTRUCTION_SETS.get(name.strip())
        if beginnings is not None:
            return tuple(sorted(flag for flag in flags.split() if flag.startswith(beginnings)))
    return ()


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def machine_of(accelerator: Accelerator) -> Machine:
    """Return the machine as the resolution of vLLM's settings sees it."""
    if accelerator.kind == "cpu":
        return machine_named("cpu")
    gpu = accelerator.devices[0]
    return Machine(gpu=gpu.capability, memory_gib=gpu.memory_mib / 1024, name=gpu.name)
