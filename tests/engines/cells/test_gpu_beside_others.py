"""A run on a GPU that others use as well: what is waited for, and what an engine that found no room says."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_nvml import H100, FakeGpu, FakeNvml

from rlaudit.engines.cells import executor
from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.hardware.gpu_memory import GpuMemory
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.laboratory.run_folder import RunFolder
from rlaudit.laboratory.runner import Runner
from rlaudit.text.progress import Progress

GPU = Device(0, "GPU-a", H100, 81_559, "sm90")
TRAINER = Environment(EnvironmentSpec("trainer", "4.57.6", "cuda"), Path("/t"), ("/t/bin/python",))
NO_ROOM = "ValueError: Free memory on device (8.1/79.2 GiB) on startup is less than desired GPU memory utilization"


def cell(folder: Path, seed: int, *, on_gpu: bool) -> Cell:
    script = folder / "script.py"
    script.touch()
    identity = {"accelerator": {"kind": "cuda"}} if on_gpu else {}
    return Cell({"script": str(script), "seed": seed}, ("python",), {}, 60.0, identity)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Runner, list[float]]]:
    """A runner on one GPU that is used so at one look after the other, and the seconds it was ready to wait."""

    def made(*used_mib: int, outcome: Outcome) -> tuple[Runner, list[float]]:
        FakeNvml(FakeGpu("GPU-a", used_mib=used_mib)).install(monkeypatch)
        monkeypatch.setattr(executor, "MEMORY_TIMEOUT_SECONDS", 0.0)
        monkeypatch.setattr(executor, "run_cell", lambda *_: outcome)
        waited: list[float] = []
        wait = GpuMemory.wait_until_free

        def counted(memory: GpuMemory, timeout_seconds: float) -> int:
            waited.append(timeout_seconds)
            return wait(memory, timeout_seconds)

        monkeypatch.setattr(GpuMemory, "wait_until_free", counted)
        here = executor.OneAtATime(tmp_path, GpuMemory((GPU,)))
        return Runner(RunFolder(tmp_path), here, Progress(quiet=True)), waited

    return made


def test_only_a_cell_that_uses_the_gpu_waits_for_its_memory(
    run: Callable[..., tuple[Runner, list[float]]], tmp_path: Path
) -> None:
    cells, waited = run(0, outcome=Outcome("ok", {}, None, {}))
    cells.outcome(cell(tmp_path, 1, on_gpu=False), "tokens")
    assert len(waited) == 0
    cells.outcome(cell(tmp_path, 2, on_gpu=True), "an engine")
    assert len(waited) == 1


def test_an_engine_that_found_no_room_says_how_much_others_have(
    run: Callable[..., tuple[Runner, list[float]]], tmp_path: Path
) -> None:
    cells, _ = run(73_000, outcome=Outcome("failed", {}, Failure("out-of-memory", NO_ROOM), {}))
    failure = cells.outcome(cell(tmp_path, 1, on_gpu=True), "an engine").failure
    assert failure is not None
    assert failure.message.startswith(NO_ROOM)
    assert "73000 of 81559 MiB of GPU 0 are in use by others" in failure.message
    assert "lower gpu_memory_utilization" in failure.message


def test_an_engine_that_found_no_room_on_a_gpu_of_its_own_blames_nobody(
    run: Callable[..., tuple[Runner, list[float]]], tmp_path: Path
) -> None:
    failed = Outcome("failed", {}, Failure("out-of-memory", NO_ROOM), {})
    cells, _ = run(300, outcome=failed)
    assert cells.outcome(cell(tmp_path, 1, on_gpu=True), "an engine") == failed
