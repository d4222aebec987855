"""What a driver cannot run is refused before anything is downloaded, by name and with the ways out."""

import platform
import re
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version
from typer.testing import CliRunner

from rlaudit.cli.app import run
from rlaudit.cli.engines import app
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec, trainer_spec
from rlaudit.engines.environments.pip_configuration import PackageSources
from rlaudit.engines.environments.refusals import Needs, needs_of_lock, newest_release, refusals, refuse
from rlaudit.engines.hardware.accelerator import Accelerator, Device
from rlaudit.errors import NotFinished
from rlaudit.vllm.builds import recorded_versions

# The drivers of NVIDIA's production and long-term branches, with the CUDA they offer.
DRIVERS = {
    **{"525.147.05": "12.0", "535.183.01": "12.2", "550.54.15": "12.4", "570.86.15": "12.8", "580.65.06": "13.0"},
}
LAST_FOR_CUDA_12 = Version("0.19.1")


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlaudit.engines.environments.refusals.read_package_sources", PackageSources)


def machine(driver: str = "", cuda: str = "") -> Accelerator:
    gpu = Device(0, "GPU-1", "NVIDIA H100 80GB HBM3", 81_559, "sm90")
    return Accelerator("cuda", gpu.name, (gpu,), driver, 16, 100_000, driver_cuda=cuda)


def engine(version: str) -> EnvironmentSpec:
    return EnvironmentSpec("vllm", version, "cuda")


@pytest.mark.parametrize(("driver", "cuda"), DRIVERS.items())
def test_each_release_is_built_or_refused_by_the_cuda_of_its_torch(driver: str, cuda: str) -> None:
    refused = {
        one.spec.version for one in refusals([engine(str(one)) for one in recorded_versions()], machine(driver, cuda))
    }
    assert refused == {str(one) for one in recorded_versions() if one > LAST_FOR_CUDA_12 and driver < "580"}


def test_a_refusal_names_what_is_needed_what_is_there_and_every_way_out() -> None:
    with pytest.raises(NotFinished) as raised:
        refuse([engine("0.18.1"), engine("0.26.0")], machine("550.54.15", "12.4"))
    assert raised.value.message == (
        "vllm-0.26.0-cuda cannot run here: its torch 2.11.0 needs NVIDIA driver 580.65.06 or newer (CUDA 13.0), "
        "and this machine's, 550.54.15, offers CUDA 12.4"
    )
    hint = raised.value.hint or ""
    ways = ("driver 580.65.06 or newer", "vLLM 0.19.1, the newest", "cuda-compat", "--python 0.26.0=COMMAND", "+cu129")
    assert all(way in hint for way in ways)


@pytest.mark.parametrize(("local", "refused"), [("+cu129", False), ("+cu131", True), ("", True), ("+rocm721", True)])
def test_a_release_that_a_named_index_has_for_an_older_cuda_is_not_refused(
    local: str, refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "vllm").mkdir()
    name = f"vllm-0.26.0{local}-cp38-abi3-manylinux_2_28_{platform.machine()}.whl"
    (tmp_path / "vllm/index.html").write_text(f'<a href="{name}">x</a>')
    named = PackageSources(index=f"file://{tmp_path}")
    monkeypatch.setattr("rlaudit.engines.environments.refusals.read_package_sources", lambda: named)
    assert bool(refusals([engine("0.26.0")], machine("550.54.15", "12.4"))) is refused
    assert refusals([engine("0.25.0")], machine("550.54.15", "12.4"))


def test_a_driver_too_old_for_any_release_is_offered_none_and_no_other_index_of_what_pypi_has() -> None:
    assert newest_release("11.4") is None
    for version, never in (("0.8.5", "newest release"), ("0.19.1", "wheels.vllm.ai")):
        (one,) = refusals([engine(version)], machine("470.82.01", "11.4"))
        assert never not in one.hint


@pytest.mark.parametrize(
    ("spec", "accelerator"),
    [
        (engine("0.33.0"), machine()),
        (EnvironmentSpec("vllm", "0.33.0", "cuda", ("/opt/vllm/bin/python",)), machine("525.147.05", "12.0")),
        (EnvironmentSpec("vllm", "0.32.0", "cpu"), machine("525.147.05", "12.0")),
        (engine("99.0"), machine("525.147.05", "12.0")),
    ],
    ids=["no driver known", "given interpreter", "CPU build", "release that is not recorded"],
)
def test_what_cannot_be_told_beforehand_is_not_refused(spec: EnvironmentSpec, accelerator: Accelerator) -> None:
    assert refusals([spec], accelerator) == ()


@pytest.mark.parametrize(
    ("line", "cuda"),
    [("nvidia-cuda-runtime-cu12==12.8.90", "12.8"), ("nvidia-cuda-runtime==13.0.96 ; sys_platform == 'linux'", "13.0")],
)
def test_the_cuda_of_resolved_packages_is_that_of_their_runtime_library(line: str, cuda: str) -> None:
    assert needs_of_lock(("torch==2.11.0", "numpy @ file:///wheels/numpy.whl", line)) == Needs("2.11.0", cuda)
    assert needs_of_lock(("torch==2.11.0+cu129", line)) == Needs("2.11.0+cu129", cuda)
    assert needs_of_lock(("torch==2.11.0+cpu", line)) is None
    assert needs_of_lock(("torch==2.11.0",)) is None


def test_engines_build_refuses_all_before_the_first_environment_is_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("rlaudit.engines.hardware.accelerator.detect", lambda: machine("570.86.15", "12.8"))
    result = CliRunner().invoke(app, ["build", "--cuda", "0.18.1", "0.26.0", "0.32.0"])
    assert isinstance(result.exception, NotFinished)
    assert re.findall(r"vllm-[\d.]+-cuda", result.exception.message) == ["vllm-0.26.0-cuda", "vllm-0.32.0-cuda"]
    assert list(tmp_path.iterdir()) == []


def test_without_a_driver_a_build_says_which_one_its_release_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("rlaudit.engines.hardware.accelerator.detect", lambda *_, **__: machine())
    monkeypatch.setattr(
        "rlaudit.engines.environments.environment.ensure", lambda spec, report: Environment(spec, tmp_path, ("python",))
    )
    said = CliRunner().invoke(app, ["build", "--cuda", "0.18.1", "0.32.0"]).stderr
    assert "vllm-0.18.1-cuda runs on driver 525.60.13" in said and "vllm-0.32.0-cuda runs on driver 580.65.06" in said


def test_the_trainer_takes_a_torch_that_the_driver_runs_and_is_refused_where_there_is_none() -> None:
    for driver, cuda in [("525.147.05", "12.0"), ("570.86.15", "12.8"), ("580.65.06", "13.0"), ("", "")]:
        assert refusals([trainer_spec("cuda", cuda)], machine(driver, cuda)) == ()
    (one,) = refusals([trainer_spec("cuda", "11.4")], machine("470.82.01", "11.4"))
    assert "driver 525.60.13 or newer" in one.message
    assert "--trainer-python" in one.hint


@pytest.mark.parametrize("recipe", ["v0-to-v1", "v1-to-latest", "weight-update"])
def test_a_dry_run_prints_what_will_be_refused(
    recipe: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("rlaudit.engines.hardware.accelerator.detect", lambda *_, **__: machine("550.54.15", "12.4"))
    assert run(["ablate", recipe, "--model", str(tmp_path), "--dry-run"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("refused: ")]
    assert not any("trainer-" in line for line in lines)
    assert any("vllm-0.32.0-cuda" in line for line in lines) is (recipe != "v0-to-v1")


def test_a_run_is_refused_whole_before_its_first_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("rlaudit.engines.hardware.accelerator.detect", lambda *_, **__: machine("550.54.15", "12.4"))
    monkeypatch.setattr("rlaudit.engines.hardware.gpu_memory.used_memory_mib", lambda devices: [0 for _ in devices])
    folder = tmp_path / "run"
    assert run(["ablate", "v1-to-latest", "--model", str(tmp_path), "--run-dir", str(folder)]) == NotFinished.exit_code
    assert "vllm-0.32.0-cuda cannot run here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_for_a_newer_glibc_is_refused_with_the_nearest_release_that_decides_the_same() -> None:
    processor = Accelerator("cpu", "a processor", (), "", 2, 24_000, glibc="2.36")
    (refused,) = refusals([EnvironmentSpec("vllm", "0.11.2", "cpu")], processor)
    assert refused.message == "vllm-0.11.2-cpu cannot run here: it needs glibc 2.38, and this machine has 2.36"
    assert "vLLM 0.11.1, the nearest release that runs here" in refused.hint
    for glibc in ("2.38", ""):
        assert not refusals([EnvironmentSpec("vllm", "0.11.2", "cpu")], replace(processor, glibc=glibc))
    assert [one.spec.version for one in refusals([engine("0.20.0")], replace(machine(), glibc="2.31"))] == ["0.20.0"]
