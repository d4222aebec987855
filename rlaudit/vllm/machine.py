"""What vLLM's own decisions depend on beyond the config: the device."""

from dataclasses import dataclass
from typing import Any

from rlaudit.errors import UsageError


@dataclass(frozen=True)
class Machine:
    """The machine on which the rollout engine runs."""

    # cuda or cpu; npu or rocm for an UnreadMachine.
    platform: str = "cuda"
    # Compute capability, as `sm90`.
    gpu: str = "sm90"
    # Memory of one device.
    memory_gib: float = 80.0
    # As the driver spells the model, for the releases that treat one model apart (A100).
    name: str = "H100"
    # Whether FlashInfer is installed and usable; None if that is not known.
    flashinfer: bool | None = None

    @property
    def capability(self) -> int:
        """The compute capability: 90 for sm90, 0 on a CPU."""
        return int(self.gpu.removeprefix("sm")) if self.platform == "cuda" else 0


class DeviceDecides(LookupError):
    """A decision that vLLM's platform for a device takes, which is not read here."""


class UnreadMachine(Machine):
    """A machine whose platform of vLLM is not read here: questions about its device raise DeviceDecides."""

    def __getattribute__(self, name: str) -> Any:
        """Return `platform` and `name`, which are known; raise DeviceDecides for anything else."""
        if name in _OF_THE_DEVICE:
            raise DeviceDecides(f"vLLM's platform for {self.name} decides it, which is not read here")
        return super().__getattribute__(name)


_OF_THE_DEVICE = {"capability", "gpu", "memory_gib", "flashinfer"}
NPU = UnreadMachine("npu", "", 0.0, "an Ascend NPU")
ROCM = UnreadMachine("rocm", "", 0.0, "an AMD GPU")
MACHINES = {
    "h100": Machine(),
    "h200": Machine(memory_gib=140.0, name="H200"),
    "h20": Machine(memory_gib=95.0, name="H20"),
    "b200": Machine(gpu="sm100", memory_gib=179.0, name="B200"),
    "gb200": Machine(gpu="sm100", memory_gib=185.0, name="GB200"),
    "b300": Machine(gpu="sm103", memory_gib=268.0, name="B300"),
    "rtx-pro-6000": Machine(gpu="sm120", memory_gib=95.0, name="RTX PRO 6000 Blackwell"),
    "a100": Machine(gpu="sm80", memory_gib=79.0, name="A100-SXM4-80GB"),
    "a100-40gb": Machine(gpu="sm80", memory_gib=39.0, name="A100-SXM4-40GB"),
    "a10": Machine(gpu="sm86", memory_gib=22.0, name="A10"),
    "a40": Machine(gpu="sm86", memory_gib=44.0, name="A40"),
    "l4": Machine(gpu="sm89", memory_gib=22.0, name="L4"),
    "l40s": Machine(gpu="sm89", memory_gib=44.0, name="L40S"),
    "rtx-4090": Machine(gpu="sm89", memory_gib=24.0, name="GeForce RTX 4090"),
    "t4": Machine(gpu="sm75", memory_gib=15.0, name="T4"),
    "cpu": Machine("cpu", "", 0.0, "CPU"),
    "npu": NPU,
    "rocm": ROCM,
}


def machine_named(name: str) -> Machine:
    """Return a machine by the name of its device. Raises UsageError, listing the known ones, for any other."""
    machine = MACHINES.get(name.lower())
    if machine is None:
        raise UsageError(f"machine {name!r} is not known", f"Known: {', '.join(MACHINES)}.")
    return machine
