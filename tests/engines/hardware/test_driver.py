"""Drivers run builds of their own major version of CUDA and of older ones."""

import pytest

from rlaudit.engines.hardware.driver import driver_runs, lowest_driver


@pytest.mark.parametrize(
    ("driver_cuda", "cuda", "runs"),
    [
        ("12.0", "12.8", True),
        ("12.4", "12.4", True),
        ("12.8", "13.0", False),
        ("13.0", "12.4", True),
        ("13.0", "13.2", True),
    ],
)
def test_a_driver_runs_its_own_major_version_and_older_ones(driver_cuda: str, cuda: str, runs: bool) -> None:
    assert driver_runs(driver_cuda, cuda) is runs


def test_the_lowest_driver_is_that_of_the_major_version() -> None:
    assert lowest_driver("12.8") == "525.60.13"
    assert lowest_driver("13.0") == "580.65.06"
