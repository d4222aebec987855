"""The trainer's packages follow the driver and the model."""

import pytest
from packaging.version import Version

from rlaudit.engines.environments.environment_spec import trainer_spec
from rlaudit.engines.environments.trainer_packages import NEWEST_TORCH, TRANSFORMERS, as_of, requirements, torch_for
from rlaudit.engines.hardware.driver import driver_runs
from rlaudit.vllm.builds import cuda_of_torch, recorded_torch


@pytest.mark.parametrize("driver_cuda", ["12.0", "12.2", "12.4", "12.8", "13.0", "13.2"])
def test_the_torch_is_the_newest_tried_one_that_the_driver_runs(driver_cuda: str) -> None:
    chosen = Version(torch_for(driver_cuda))
    assert driver_runs(driver_cuda, cuda_of_torch(str(chosen)) or "")
    newer = [version for version in recorded_torch() if chosen < version <= NEWEST_TORCH]
    assert not any(driver_runs(driver_cuda, recorded_torch()[version]) for version in newer)


def test_drivers_for_cuda_12_get_2_10_and_those_for_13_or_unknown_ones_the_newest() -> None:
    chosen = {driver_cuda: torch_for(driver_cuda) for driver_cuda in ("12.0", "12.8", "13.0", "")}
    assert chosen == {"12.0": "2.10.0", "12.8": "2.10.0", "13.0": "2.13.0", "": "2.13.0"}


def test_two_torches_and_two_transformers_are_four_environments_and_the_cpu_s_name_is_plain() -> None:
    specs = [
        trainer_spec("cuda", driver_cuda, release.version)
        for driver_cuda in ("12.8", "13.0")
        for release in TRANSFORMERS
    ]
    assert len({spec.name for spec in specs}) == 4
    assert specs[0].name == "trainer-4.57.6-torch2.10.0-cuda"
    assert trainer_spec("cpu").name == "trainer-4.57.6-cpu"


def test_what_is_installed_is_what_the_name_says() -> None:
    spec = trainer_spec("cuda", "12.8", "5.23.0")
    wanted = requirements(spec.version, spec.torch)
    assert {"transformers==5.23.0", "torch==2.10.0"} <= set(wanted)
    assert f"torch=={NEWEST_TORCH}" in requirements("4.57.6", trainer_spec("cpu").torch)
    assert as_of("4.57.6") == "2026-10-25"
    assert as_of("4.40.0") is None
