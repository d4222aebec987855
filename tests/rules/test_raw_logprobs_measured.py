"""What was measured of a release stands beside the finding that it supports, if the sampler is the measured one."""

from simulated_audit import findings

from rlaudit.rules import known_rules
from rlaudit.vllm.measured import measured

DIVIDES = {
    "sampling": {"temperature": 0.7},
    "trainer": {"divides_by_temperature": True, "uses_rollout_logprobs": True, "replays_filters": False},
}


def look(release: str, **config: object) -> str:
    (finding,) = findings(known_rules()["raw-logprobs"], {"to": release, **DIVIDES, **config})
    return finding.look


def shift(release: str, platform: str) -> str:
    known = measured(release, platform)
    assert known is not None
    figure = known.cells["temperature/candidate/mean_ratio_minus_one"]
    return f"a mean ratio minus 1 of {figure['value']:.2g} [{figure['low']:.2g}, {figure['high']:.2g}]"


def test_a_finding_has_the_figure_that_a_gpu_measured_of_its_release():
    here = look("0.24.0")
    assert f"With raw logprobs of vLLM 0.24.0, rlaudit measured {shift('0.24.0', 'cuda')} at T = 0.7 on NVIDIA" in here
    assert shift("0.24.0", "cpu") in look("0.24.0", machine={"platform": "cpu"})


def test_a_release_that_no_gpu_measured_has_that_of_the_processor_if_the_sampler_is_the_same():
    assert measured("0.18.1", "cuda") is None
    assert "(CPU build, which has the sampler of CUDA)" in look("0.18.1") and shift("0.18.1", "cpu") in look("0.18.1")


def test_the_second_model_runner_has_another_sampler_and_gets_no_figure_of_a_processor():
    assert measured("0.32.0", "cpu") is not None and measured("0.32.0", "cuda") is None
    assert "measured" not in look("0.32.0")
    assert "measured" in look("0.32.0", machine={"platform": "cpu"})


def test_a_release_that_was_not_measured_gets_no_figure():
    assert measured("0.33.0", "cpu") is None
    assert "measured" not in look("0.33.0", machine={"platform": "cpu"})
