"""Signs of a GPU that no library is needed for: device nodes, the PCI bus, and what Windows lends to WSL.

Where the driver's management library says nothing, they tell a machine without a GPU from one whose GPU is silent.
"""

from collections.abc import Iterator
from pathlib import Path

NVIDIA, DISPLAY_CLASS = "0x10de", "0x03"
# The last two are those of Jetson boards.
NVIDIA_NODES = ("nvidia[0-9]*", "nvidiactl", "nvgpu*", "nvhost-gpu")


def nvidia_sign(root: Path) -> str | None:
    """What shows that there is an NVIDIA GPU, in words; None where nothing does. `root` is the file system's."""
    nodes = sorted(path.name for pattern in NVIDIA_NODES for path in (root / "dev").glob(pattern))
    if nodes:
        return f"/dev/{nodes[0]}"
    # Windows lends every GPU as /dev/dxg; it puts these libraries beside it for NVIDIA's only.
    if (root / "dev/dxg").exists() and any((root / "usr/lib/wsl/lib").glob("libcuda.so*")):
        return "/dev/dxg and /usr/lib/wsl/lib/libcuda.so"
    for device in _pci_devices(root):
        if _read(device / "vendor") == NVIDIA and _read(device / "class").startswith(DISPLAY_CLASS):
            return f"PCI device {device.name}"
    return None


def amd_sign(root: Path) -> str | None:
    """What shows that there is a GPU which the amdgpu driver serves, in words; None where nothing does."""
    if (root / "dev/kfd").exists():
        return "/dev/kfd"
    for device in sorted((root / "sys/bus/pci/drivers/amdgpu").glob("*:*")):
        return f"PCI device {device.name}, driver amdgpu"
    return None


def kernel_module_version(root: Path) -> str | None:
    """The first line that NVIDIA's kernel module says of itself; None where it is not loaded."""
    said = _read(root / "proc/driver/nvidia/version")
    return said.splitlines()[0] if said else None


def _pci_devices(root: Path) -> Iterator[Path]:
    yield from sorted((root / "sys/bus/pci/devices").glob("*"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
