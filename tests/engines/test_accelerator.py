import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.engines.accelerator import detect, used_memory_mib, wait_until_memory_is_free

GIB = 1024**3


class FakeNvml:
    """A driver with GPUs whose memory use is read from a script, one figure per question."""

    def __init__(self, count: int = 2, used_gib: tuple[int, ...] = (0,)) -> None:
        self.uuids = [f"GPU-{letter}" for letter in "abcdef"[:count]]
        self.used = list(used_gib)
        self.sessions = 0

    def nvmlInit(self) -> None:
        self.sessions += 1

    def nvmlShutdown(self) -> None:
        self.sessions -= 1

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"570.1"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return self.uuids[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def nvmlDeviceGetName(self, handle: str) -> str:
        return f"Fake {handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        used = self.used.pop(0) if len(self.used) > 1 else self.used[0]
        return SimpleNamespace(total=80 * GIB, used=used * GIB)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(nvml: Any) -> Any:
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        return nvml

    return install


def test_gpus_are_described_by_the_driver(driver: Any) -> None:
    nvml = driver(FakeNvml())
    found = detect({})
    assert (found.kind, found.name, found.driver) == ("cuda", "Fake GPU-a", "570.1")
    assert [device.memory_mib for device in found.devices] == [81920, 81920]
    assert nvml.sessions == 0


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        ("1", ["GPU-b"]),
        ("1,0", ["GPU-b", "GPU-a"]),
        ("GPU-b", ["GPU-b"]),
        ("0,7,1", ["GPU-a"]),
        ("-1", []),
        ("", []),
    ],
)
def test_visible_devices_are_taken_as_cuda_takes_them(driver: Any, visible: str, uuids: list[str]) -> None:
    driver(FakeNvml())
    found = detect({"CUDA_VISIBLE_DEVICES": visible})
    assert [device.uuid for device in found.devices] == uuids
    assert found.kind == ("cuda" if uuids else "cpu")


def test_a_machine_without_a_driver_is_a_cpu_machine(driver: Any) -> None:
    class NoDriver(FakeNvml):
        def nvmlInit(self) -> None:
            raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    driver(NoDriver())
    found = detect({})
    assert found.kind == "cpu"
    assert found.cores >= 1
    assert found.memory_mib > 0
    assert found.name
    assert used_memory_mib(found) == ()
    assert wait_until_memory_is_free(found, (), timeout_seconds=0)


def test_a_driver_that_breaks_off_hides_its_gpus(driver: Any) -> None:
    class Lost(FakeNvml):
        def nvmlDeviceGetUUID(self, handle: str) -> str:
            raise RuntimeError("GPU is lost")

    nvml = driver(Lost())
    assert detect({}).kind == "cpu"
    assert nvml.sessions == 0


def test_waiting_ends_when_the_memory_is_back(driver: Any) -> None:
    driver(FakeNvml(count=1))
    gpu = detect({})
    driver(FakeNvml(count=1, used_gib=(40, 40, 1)))
    assert wait_until_memory_is_free(gpu, (1024,), timeout_seconds=60, poll_seconds=0)


def test_waiting_ends_at_the_deadline_and_says_what_is_still_held(driver: Any) -> None:
    driver(FakeNvml(count=1))
    gpu = detect({})
    driver(FakeNvml(count=1, used_gib=(40,)))
    waited = wait_until_memory_is_free(gpu, (1024,), timeout_seconds=0, poll_seconds=0)
    assert not waited
    assert waited.still_held_mib == (39 * 1024,)
