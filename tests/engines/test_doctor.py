"""Which engines the doctor starts on which machine; the starts themselves are recorded, not made."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.cells.launch import Outcome
from rlaudit.engines.engine import Build
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.hardware.accelerator import Accelerator, Device
from rlaudit.engines.inside import doctor
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe
from rlaudit.laboratory.studies.arms.rollout import engine_of

LACKING = ("a C compiler: gcc or clang",)
H100, T4 = Device(0, "GPU-1", "H100", 81559, "sm90"), Device(0, "GPU-2", "T4", 15360, "sm75")


class Starts:
    """Engines that load what they are expected to."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []

    def launch(self, cell: Path, command: tuple[str, ...], variables: Mapping[str, str], seconds: float) -> Outcome:
        job = json.loads((cell / "job.json").read_text())
        if Path(job["script"]).name != "generate.py":
            return Outcome("ok", {}, None, {})
        self.jobs.append({**job, "variables": dict(variables)})
        resolved = {"engine": job["engine"]["kind"]}
        return Outcome("ok", {"resolved": resolved, "seconds": 1, "generated_tokens": 32}, None, {})


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Starts, Any]]:
    """The engines that are started for a build on a machine with this GPU, and the symptoms by name."""
    return partial(examined_with, monkeypatch)


def examined_with(
    monkeypatch: pytest.MonkeyPatch, version: str, build: Build, gpu: Device | None
) -> tuple[Starts, Any]:
    starts = Starts()
    accelerator = Accelerator("cuda" if gpu else "cpu", "this machine", (gpu,) if gpu else (), "", 2, 1024)
    monkeypatch.setattr(doctor, "launch", starts.launch)
    monkeypatch.setattr(doctor, "detect", lambda: accelerator)
    monkeypatch.setattr(doctor, "missing_for_triton", lambda command: LACKING)
    environment = Environment(EnvironmentSpec("vllm", version, build), Path("/e"), ("/e/bin/python",))
    diagnosis = doctor.examine(environment, lambda text: None)
    return starts, {symptom.name: symptom for symptom in diagnosis.symptoms}


def test_on_a_gpu_both_engines_of_a_release_start_in_bfloat16(examined: Any) -> None:
    starts, says = examined("0.8.5", "cuda", H100)
    assert {job["engine_args"]["dtype"] for job in starts.jobs} == {"bfloat16"}
    kinds = [(job["engine"]["kind"], job["variables"].get("VLLM_USE_V1")) for job in starts.jobs[:2]]
    assert kinds == [("V1", None), ("V0", "0")]
    assert says["starts"].says.startswith("V1 engine")
    assert says["engine V0"].works


def test_what_kernels_need_of_the_machine_is_looked_for_where_they_are_compiled(examined: Any) -> None:
    says = examined("0.18.1", "cuda", H100)[1]
    assert (says["compiles kernels"].works, says["compiles kernels"].says) == (False, LACKING[0])
    assert "compiles kernels" not in examined("0.18.1", "cpu", None)[1]


def test_a_gpu_without_bfloat16_is_examined_in_float16(examined: Any) -> None:
    starts, says = examined("0.8.5", "cuda", T4)
    assert {job["engine_args"]["dtype"] for job in starts.jobs} == {"float16"}
    assert says["starts"].says.startswith("V0 engine")
    assert (says["engine V1"].works, says["engine V1"].says) == (None, "not on this machine: T4 is older than Ampere")


def test_a_cpu_build_is_examined_as_on_a_cpu_whatever_gpu_is_there(examined: Any) -> None:
    starts, says = examined("0.8.5", "cpu", H100)
    assert {job["engine_args"]["dtype"] for job in starts.jobs} == {"float32"}
    assert says["starts"].says.startswith("V0 engine")
    assert says["engine V1"].says == "not on this machine: the platform is a CPU"


@pytest.mark.parametrize("version", ["0.8.5", "0.9.2", "0.10.2", "0.18.1"])
@pytest.mark.parametrize("gpu", [H100, T4])
def test_the_doctor_expects_the_engine_that_ablate_expects(version: str, gpu: Device, examined: Any) -> None:
    starts, _ = examined(version, "cuda", gpu)
    machine = doctor.machine_of(Accelerator("cuda", gpu.name, (gpu,), "", 2, 1024))
    block = {"name": "one", "candidate": {"version": version}, "engine_args": {"dtype": doctor.dtype_on(machine)}}
    candidate = make_plan(Recipe.model_validate({"blocks": [block]})).blocks[0].arms[0]
    assert starts.jobs[0]["engine"]["kind"] == engine_of(candidate.treatment, machine).kind


def test_a_release_with_one_engine_is_not_asked_for_another(examined: Any) -> None:
    _, says = examined("0.18.1", "cuda", H100)
    assert not [name for name in says if name.startswith("engine ")]


@pytest.mark.parametrize(("version", "block"), [("0.8.5", 16), ("0.18.1", 16), ("0.32.0", 32)])
def test_a_cpu_build_gets_blocks_that_its_attention_takes(version: str, block: int, examined: Any) -> None:
    starts, _ = examined(version, "cpu", None)
    assert {job["engine_args"]["block_size"] for job in starts.jobs} == {block}
