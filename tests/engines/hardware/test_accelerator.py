import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from fake_nvml import A100, H100, T400, FakeGpu, FakeNvml

from rlaudit.engines.hardware.accelerator import detect
from rlaudit.errors import NotFinished

ONE, TWO = FakeGpu("GPU-a"), FakeGpu("GPU-b")
NO_LIBRARY = FakeNvml(start_fault=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """detect() on a machine with this driver, these files and this CUDA_VISIBLE_DEVICES."""

    def detected(
        nvml: FakeNvml, visible: str | None = None, files: dict[str, str] | None = None, **options: Any
    ) -> Any:
        nvml.install(monkeypatch)
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        environ = {"CUDA_VISIBLE_DEVICES": visible} if visible is not None else {}
        return detect(environ=environ | options.pop("environ", {}), root=tmp_path, **options)

    return detected


def test_gpus_are_described_by_the_driver(on: Any) -> None:
    nvml = FakeNvml(ONE, TWO)
    found = on(nvml)
    assert (found.kind, found.name, found.driver, found.driver_cuda) == ("cuda", H100, "570.1", "12.8")
    assert [(device.index, device.memory_mib, device.capability) for device in found.devices] == [
        (0, 81_559, "sm90"),
        (1, 81_559, "sm90"),
    ]
    assert nvml.sessions == 0


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [("1", "b"), ("1,0", "ba"), ("GPU-b", "b"), ("0,7,1", "a"), ("GPU-b, 0", "ba"), ("0,-1,1", "a")],
)
def test_visible_devices_are_taken_as_cuda_takes_them(on: Any, visible: str, uuids: str) -> None:
    found = on(FakeNvml(ONE, TWO), visible)
    assert [device.uuid for device in found.devices] == [f"GPU-{letter}" for letter in uuids]


@pytest.mark.parametrize("libcuda, newest", [(13000, "13.0"), (12020, "12.8")])
def test_a_newer_libcuda_beside_the_driver_decides_which_cuda_runs(
    on: Any, monkeypatch: pytest.MonkeyPatch, libcuda: int, newest: str
) -> None:
    def answer(version: Any) -> int:
        version._obj.value = libcuda
        return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(cuDriverGetVersion=answer))
    assert on(FakeNvml(ONE)).driver_cuda == newest


def test_a_machine_without_a_gpu_is_a_cpu_machine(on: Any) -> None:
    found = on(NO_LIBRARY, "", {"sys/bus/pci/devices/0000:00:03.0/vendor": "0x1234\n"})
    assert (found.kind, found.devices, found.driver) == ("cpu", (), "")
    assert found.cores >= 1
    assert found.memory_mib > 0
    assert found.name


def test_whoever_asks_for_the_cpu_gets_it_and_no_driver_is_asked(on: Any) -> None:
    nvml = FakeNvml(ONE, start_fault=pynvml.NVML_ERROR_UNKNOWN)
    assert on(nvml, None, {"dev/kfd": ""}, cpu=True).kind == "cpu"


PCI_GPU = {
    "sys/bus/pci/devices/0000:41:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:41:00.0/class": "0x030200\n",
}
SOUND_OF_A_GPU = {**PCI_GPU, "sys/bus/pci/devices/0000:41:00.0/class": "0x040300\n"}
MIG = FakeGpu("GPU-a", A100, 40_960, mig=True)
LOST = FakeGpu("GPU-x", fault=pynvml.NVML_ERROR_GPU_IS_LOST)
FORBIDDEN = FakeGpu("GPU-x", fault=pynvml.NVML_ERROR_NO_PERMISSION)
REFUSED: dict[str, tuple[FakeNvml, str | None, dict[str, str], str]] = {
    "hidden by the user": (FakeNvml(ONE, TWO), "", {}, "leaves no GPU"),
    "hidden by the scheduler": (FakeNvml(ONE), "NoDevFiles", {}, "leaves no GPU"),
    "a number that is not there": (FakeNvml(ONE), "3", {}, "leaves no GPU"),
    "another machine's UUID": (FakeNvml(ONE), "GPU-f", {}, "leaves no GPU"),
    "the same GPU twice": (FakeNvml(ONE, TWO), "0,GPU-a", {}, "twice"),
    "a beginning that two UUIDs share": (FakeNvml(ONE, TWO), "GPU-", {}, "leaves no GPU"),
    "driver and library differ": (
        FakeNvml(start_fault=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH),
        None,
        {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX 535.1\nGCC version\n"},
        "different versions; loaded is NVRM version: NVIDIA UNIX 535.1",
    ),
    "no library in the container": (NO_LIBRARY, None, {"dev/nvidia0": ""}, "/dev/nvidia0.*no libnvidia-ml"),
    "no driver for the card": (NO_LIBRARY, None, PCI_GPU, "PCI device 0000:41:00.0.*no libnvidia-ml"),
    "no library on WSL": (
        NO_LIBRARY,
        None,
        {"dev/dxg": "", "usr/lib/wsl/lib/libcuda.so.1": ""},
        "/dev/dxg.*no libnvidia-ml",
    ),
    "no kernel module": (
        FakeNvml(start_fault=pynvml.NVML_ERROR_DRIVER_NOT_LOADED),
        None,
        PCI_GPU,
        "does not answer.*Driver Not Loaded",
    ),
    "no GPU given to the container": (FakeNvml(), None, PCI_GPU, "shows this process none"),
    "the driver fails otherwise": (FakeNvml(start_fault=pynvml.NVML_ERROR_UNKNOWN), None, {}, "does not answer"),
    "a GPU fell off the bus": (FakeNvml(ONE, LOST), None, {}, "GPU 1 does not answer its driver: GPU is lost"),
    "it was the one that is named": (FakeNvml(ONE, LOST), "1", {}, "GPU 1 does not answer"),
    "its UUID is named": (FakeNvml(ONE, LOST), "GPU-x", {}, "GPU 1 does not answer"),
    "the cgroup forbids all": (FakeNvml(FORBIDDEN, FORBIDDEN), None, {}, "may use none of the 2 GPUs"),
    "the cgroup forbids the named one": (
        FakeNvml(FakeGpu("GPU-a", minor=0), FakeGpu("GPU-b", minor=1)),
        "GPU-b",
        {"dev/nvidia0": ""},
        "may not use GPU-b",
    ),
    "MIG": (FakeNvml(MIG), None, {}, "GPU-a is .* MIG on, and rlaudit runs engines on whole GPUs"),
    "a number where MIG is on": (FakeNvml(MIG, TWO), "1", {}, "whole GPUs"),
    "a GPU with MIG": (FakeNvml(MIG, TWO), "GPU-a", {}, "whole GPUs"),
    "a MIG instance": (FakeNvml(MIG), "MIG-1", {}, "MIG-1 is a MIG instance"),
    "GPUs of several kinds": (FakeNvml(FakeGpu("GPU-t", T400), ONE), "0", {}, "of several kinds"),
    "ROCm": (NO_LIBRARY, None, {"dev/kfd": ""}, "AMD GPU .*CUDA only"),
    "an AMD card without compute nodes": (
        NO_LIBRARY,
        None,
        {"sys/bus/pci/drivers/amdgpu/0000:03:00.0/vendor": "0x1002"},
        "AMD GPU .*0000:03:00.0",
    ),
}


@pytest.mark.parametrize("situation", REFUSED)
def test_a_gpu_that_cannot_be_used_never_becomes_the_cpu(on: Any, situation: str) -> None:
    nvml, visible, files, said = REFUSED[situation]
    with pytest.raises(NotFinished, match=said) as refused:
        on(nvml, visible, files)
    assert refused.value.exit_code == 3
    assert refused.value.hint


T400_THEN_H100 = FakeNvml(FakeGpu("GPU-t", T400), ONE)
NODES = FakeNvml(FakeGpu("GPU-a", minor=0), FakeGpu("GPU-b", minor=1))
BY_BUS = {"environ": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}
FORBIDS_THE_FIRST = FakeNvml(FORBIDDEN, FakeGpu("GPU-a"), FakeGpu("GPU-b"))
# By what is known of the GPUs: the driver, CUDA_VISIBLE_DEVICES, what else, and the GPUs that are found.
FOUND: dict[str, tuple[FakeNvml, str | None, dict[str, Any], str]] = {
    "of several kinds, the small one by its UUID": (T400_THEN_H100, "GPU-t", {}, "GPU-t"),
    "of several kinds, the large one by its UUID": (T400_THEN_H100, "GPU-a", {}, "GPU-a"),
    "of several kinds, where CUDA counts by bus": (T400_THEN_H100, "1", BY_BUS, "GPU-a"),
    "numbers count what the cgroup allows": (FORBIDS_THE_FIRST, "1", {}, "GPU-b"),
    "what the cgroup allows": (FORBIDS_THE_FIRST, None, {}, "GPU-a GPU-b"),
    "one without a node is not ours": (NODES, None, {"files": {"dev/nvidia1": ""}}, "GPU-b"),
    "those before a lost one, by number": (FakeNvml(ONE, LOST, TWO), "0", {}, "GPU-a"),
    "those beside a lost one, by UUID": (FakeNvml(ONE, LOST, TWO), "GPU-b", {}, "GPU-b"),
    "beside a processor that has an AMD one": (FakeNvml(ONE), None, {"files": {"dev/kfd": ""}}, "GPU-a"),
    "a card's sound device is none": (NO_LIBRARY, None, {"files": SOUND_OF_A_GPU}, ""),
}


@pytest.mark.parametrize("situation", FOUND)
def test_gpus_that_can_be_used_are_found_by_number_or_uuid(on: Any, situation: str) -> None:
    nvml, visible, more, uuids = FOUND[situation]
    assert [device.uuid for device in on(nvml, visible, **more).devices] == uuids.split()


def test_a_gpu_that_shares_the_hosts_memory_has_all_of_it(on: Any) -> None:
    found = on(FakeNvml(FakeGpu("GPU-a", "NVIDIA GB10", None)))
    assert found.devices[0].memory_mib == found.memory_mib
