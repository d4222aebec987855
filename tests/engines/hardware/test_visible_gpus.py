"""How an engine process is told of the GPUs that were found."""

import ctypes
from pathlib import Path

import pynvml
import pytest
from fake_nvml import A100, FakeGpu, FakeNvml

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.engines.hardware.visible_gpus import gpu_variables
from rlaudit.errors import NotFinished

FORBIDDEN = FakeGpu("GPU-x", fault=pynvml.NVML_ERROR_NO_PERMISSION)
MIG = FakeGpu("GPU-a", A100, 40_960, mig=("MIG-0", "MIG-1"))
OLD, NEW, TRAINER = (
    EnvironmentSpec("vllm", "0.18.1", "cuda"),
    EnvironmentSpec("vllm", "0.24.0", "cuda"),
    EnvironmentSpec("trainer", "4.57.6", "cuda"),
)


@pytest.fixture(autouse=True)
def no_libcuda(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)


def told(
    monkeypatch: pytest.MonkeyPatch, root: Path, spec: EnvironmentSpec, visible: str | None, *gpus: FakeGpu
) -> str:
    """CUDA_VISIBLE_DEVICES of an engine started where these GPUs are and the shell's variable is `visible`."""
    FakeNvml(*gpus).install(monkeypatch)
    environ = {"CUDA_VISIBLE_DEVICES": visible} if visible is not None else {}
    variables = gpu_variables(detect(environ=environ, root=root).devices, spec)
    assert variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    return variables["CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize("spec", [OLD, NEW, TRAINER], ids=lambda spec: spec.name)
def test_a_uuid_becomes_the_driver_s_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spec: EnvironmentSpec
) -> None:
    gpus = (FakeGpu("GPU-a"), FakeGpu("GPU-b"))
    assert told(monkeypatch, tmp_path, spec, "GPU-b,GPU-a", *gpus) == "1,0"
    assert told(monkeypatch, tmp_path, spec, None, *gpus) == "0,1"


def test_the_only_mig_instance_is_number_0_for_every_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone = FakeGpu("GPU-a", A100, mig=(None, None, "MIG-2"))
    assert told(monkeypatch, tmp_path, OLD, "MIG-2", alone) == "0"


def test_a_mig_instance_among_others_is_refused_by_releases_that_take_numbers_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(NotFinished, match=r"vLLM 0.18.1 cannot be shown MIG-0 .*0.24.0") as refused:
        told(monkeypatch, tmp_path, OLD, "MIG-0", MIG)
    assert "--gpus device=MIG-0" in str(refused.value.hint)
    assert told(monkeypatch, tmp_path, NEW, "MIG-0", MIG) == "MIG-0"


def test_a_mig_instance_that_a_release_would_look_up_as_another_gpu_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(NotFinished, match=r"vLLM 0.24.0 cannot be shown MIG-1"):
        told(monkeypatch, tmp_path, NEW, "MIG-1", MIG)
    assert told(monkeypatch, tmp_path, TRAINER, "MIG-1", MIG) == "MIG-1"


def test_a_gpu_after_one_that_the_cgroup_forbids_has_no_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = FakeGpu("GPU-a")
    assert told(monkeypatch, tmp_path, NEW, "0", FORBIDDEN, ours) == "GPU-a"
    assert told(monkeypatch, tmp_path, OLD, "0", ours, FORBIDDEN) == "0"
    with pytest.raises(NotFinished, match=r"0.18.1 cannot be shown GPU-a"):
        told(monkeypatch, tmp_path, OLD, "0", FORBIDDEN, ours)


def test_an_engine_on_the_cpu_sees_no_gpu() -> None:
    assert gpu_variables((), OLD) == {"CUDA_VISIBLE_DEVICES": ""}
