"""What cannot fit is said by name before anything starts; what may fit is not."""

from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.nvidia_driver import Device
from rlaudit.engines.models.model_files import ModelFiles
from rlaudit.errors import NotFinished
from rlaudit.laboratory.fit import GIB, misfit, plan_needs, refuse_what_cannot_fit, trainer_need
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import Recipe


def gpus(count: int, gib: int = 80) -> Accelerator:
    devices = tuple(Device(place, f"GPU-{place}", "NVIDIA H100", gib * 1024, "sm90") for place in range(count))
    return Accelerator("cuda", "NVIDIA H100", devices, "580.65.06", 16, 256 * 1024)


def processor(gib: int) -> Accelerator:
    return Accelerator("cpu", "a processor", (), "", 2, gib * 1024)


def model(gib: float) -> ModelFiles:
    return ModelFiles("org/model", {"model_type": "llama", "dtype": "bfloat16"}, int(gib * GIB))


def refusal(accelerator: Accelerator, files: ModelFiles, **block: Any) -> str:
    recipe = Recipe.model_validate({"blocks": [{"name": "b", "candidate": {"version": "0.18.1"}, **block}]})
    found = misfit(files, plan_needs(make_plan(recipe), accelerator, files))
    return "" if found is None else str(found)


def test_a_model_for_two_gpus_is_refused_on_one_by_the_trainer_s_name() -> None:
    assert refusal(gpus(1), model(15)) == ""
    said = refusal(gpus(1), model(130), engine_args={"tensor_parallel_size": 2})
    assert "org/model does not fit: the trainer in bfloat16 needs 130.0 GiB" in said
    assert "the NVIDIA H100 has 77.0 GiB" in said
    assert "--model" in said


def test_the_trainer_is_shared_out_over_all_gpus_and_the_engine_as_it_was_told() -> None:
    shared = {"engine_args": {"tensor_parallel_size": 2}}
    assert refusal(gpus(2), model(130), **shared) == ""
    said = refusal(gpus(2), model(130))
    assert "vLLM 0.18.1, b: candidate, on each of 1 GPU needs 130.0 GiB" in said
    assert "90 % of a GPU (gpu_memory_utilization) is 72.0 GiB" in said
    assert "tensor_parallel_size" in said


def test_the_share_of_a_gpu_is_the_one_that_was_set_or_the_release_s_own() -> None:
    assert refusal(gpus(1), model(60)) == ""
    assert "50 % of a GPU" in refusal(gpus(1), model(60), engine_args={"gpu_memory_utilization": 0.5})
    assert refusal(gpus(1), model(73), candidate={"version": "0.33.0"}) == ""
    assert "90 % of a GPU" in refusal(gpus(1), model(73))


def test_float32_takes_twice_the_room_and_the_hint_says_what_takes_less() -> None:
    said = refusal(gpus(1), model(40), trainer={"dtype": "float32"})
    assert "the trainer in float32 needs 80.0 GiB" in said
    assert "trainer.dtype" in said
    assert refusal(gpus(1), model(40)) == ""
    assert "vLLM" in refusal(gpus(1), model(40), engine_args={"dtype": "float32"})


def test_a_processor_holds_what_the_machine_s_memory_holds() -> None:
    assert refusal(processor(24), model(15)) == ""
    assert "this machine has 22.5 GiB" in refusal(processor(24), model(30))


def test_an_engine_whose_arguments_change_the_weights_and_a_size_that_is_not_known_are_not_refused() -> None:
    for arguments in ({"quantization": "fp8"}, {"cpu_offload_gb": 100}):
        assert refusal(gpus(2), model(130), engine_args=arguments) == ""
    assert refusal(gpus(1, gib=1), ModelFiles("org/model", unknown="no network")) == ""


def test_scoring_alone_asks_for_the_trainer_only() -> None:
    with pytest.raises(NotFinished, match="the trainer in float32"):
        refuse_what_cannot_fit(model(50), trainer_need("float32", gpus(1), model(50)))


def test_a_run_that_cannot_fit_ends_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rlaudit.cli.app import run

    large = tmp_path / "large"
    large.mkdir()
    (large / "config.json").write_text('{"model_type": "llama", "dtype": "bfloat16"}')
    with (large / "model.safetensors").open("wb") as weights:
        weights.truncate(100 * GIB)
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("rlaudit.engines.hardware.accelerator.detect", lambda *_, **__: processor(24))
    command = ["ablate", "quick", "--model", str(large), "--run-dir", str(tmp_path / "run")]
    assert run([*command, "--dry-run"]) == 0
    assert "refused: " in capsys.readouterr().out
    assert run(command) == NotFinished.exit_code
    assert f"{large} does not fit: the trainer" in capsys.readouterr().err
    assert not cache.exists()
    assert not (tmp_path / "run").exists()
