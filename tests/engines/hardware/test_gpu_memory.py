import pytest
from fake_nvml import H100, FakeGpu, FakeNvml

from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.hardware.nvidia_driver import Device

GPU = Device(0, "GPU-a", H100, 81_559, "sm90")


def memory_of(monkeypatch: pytest.MonkeyPatch, *used_mib: int) -> GpuMemory:
    """A GPU on which so much is in use before the run, and then at one look after the other."""
    FakeNvml(FakeGpu("GPU-a", used_mib=used_mib)).install(monkeypatch)
    return GpuMemory((GPU,))


def test_waiting_ends_when_the_last_engine_s_memory_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = memory_of(monkeypatch, 1_024, 40_000, 40_000, 1_100)
    assert memory.wait_until_free(timeout_seconds=60, poll_seconds=0) == 0


def test_waiting_ends_at_the_deadline_and_says_how_much_is_still_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_of(monkeypatch, 1_024, 40_000).wait_until_free(timeout_seconds=0) == 38_976


def test_a_neighbour_that_grew_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = memory_of(monkeypatch, 1_024, 40_000, 40_000, 60_000)
    assert memory.wait_until_free(timeout_seconds=0) == 38_976
    assert memory.wait_until_free(timeout_seconds=0) == 0
    assert memory.wait_until_free(timeout_seconds=0) == 20_000


def test_without_a_gpu_or_with_one_that_shares_the_host_s_memory_nothing_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert GpuMemory(()).wait_until_free(timeout_seconds=60) == 0
    assert GpuMemory(()).held_by_others() is None
    FakeNvml(FakeGpu("GPU-a", "NVIDIA GB10", None)).install(monkeypatch)
    assert GpuMemory((GPU,)).wait_until_free(timeout_seconds=60) == 0


@pytest.mark.parametrize(("used", "said"), [(70_000, "70000 of 81559 MiB of GPU 0"), (600, None)])
def test_what_others_hold_is_named_and_the_driver_s_own_share_is_none(
    used: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memory_of(monkeypatch, used).held_by_others() == said
