"""What an environment takes on disk is known by the CUDA of its torch."""

import pytest

from rlaudit.engines.environments.disk import gigabytes


def test_the_largest_environments_fit_what_is_said() -> None:
    assert gigabytes("vllm", "12.8") > 10.40
    assert gigabytes("vllm", "13.0") > 9.70
    assert gigabytes("trainer", "13.0") < gigabytes("trainer", "12.8") < gigabytes("vllm", "13.0")
    assert gigabytes("vllm", "") < gigabytes("trainer", "13.0")


@pytest.mark.parametrize("cuda", ["14.0", None])
def test_for_a_cuda_that_was_not_measured_the_largest_is_said(cuda: str | None) -> None:
    assert gigabytes("vllm", cuda) == gigabytes("vllm", "12.4")
