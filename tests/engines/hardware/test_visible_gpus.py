"""How an engine process is told of the GPUs that were found."""

from pathlib import Path

import pynvml
import pytest
from fake_nvml import A100, FakeGpu, FakeNvml

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.engines.hardware.visible_gpus import gpu_variables
from rlaudit.errors import NotFinished

FORBIDDEN = FakeGpu("GPU-x", fault=pynvml.NVML_ERROR_NO_PERMISSION)
OLD, NEW, TRAINER = (
    EnvironmentSpec("vllm", "0.18.1", "cuda"),
    EnvironmentSpec("vllm", "0.24.0", "cuda"),
    EnvironmentSpec("trainer", "4.57.6", "cuda"),
)


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


def test_a_gpu_beside_one_with_mig_has_no_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    split, whole = FakeGpu("GPU-a", A100, mig=True), FakeGpu("GPU-b", A100)
    assert told(monkeypatch, tmp_path, NEW, "GPU-b", split, whole) == "GPU-b"
    with pytest.raises(NotFinished, match=r"0.18.1 cannot be shown GPU-b") as refused:
        told(monkeypatch, tmp_path, OLD, "GPU-b", split, whole)
    assert "--gpus device=GPU-b" in str(refused.value.hint)


def test_a_gpu_after_one_that_the_cgroup_forbids_has_no_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = FakeGpu("GPU-a")
    assert told(monkeypatch, tmp_path, NEW, "0", FORBIDDEN, ours) == "GPU-a"
    assert told(monkeypatch, tmp_path, OLD, "0", ours, FORBIDDEN) == "0"
    with pytest.raises(NotFinished, match=r"0.18.1 cannot be shown GPU-a"):
        told(monkeypatch, tmp_path, OLD, "0", FORBIDDEN, ours)


def test_an_engine_on_the_cpu_sees_no_gpu() -> None:
    assert gpu_variables((), OLD) == {"CUDA_VISIBLE_DEVICES": ""}
