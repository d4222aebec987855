"""What was measured of a release stands beside the finding that it supports, if the sampler is the measured one."""

from simulated_audit import findings

from rlaudit.rules import known_rules
from rlaudit.vllm.measured import measured

DIVIDES = {
    "sampling": {"temperature": 0.7},
    "trainer": {"divides_by_temperature": True, "uses_rollout_logprobs": True, "replays_filters": False},
}


def confirm(release: str, **config: object) -> str:
    (finding,) = findings(known_rules()["raw-logprobs"], {"to": release, **DIVIDES, **config})
    return finding.confirm


def test_a_finding_has_the_figure_that_was_measured_of_its_release():
    found = measured("0.18.1")
    assert found is not None
    shift = found.cells["temperature/candidate/mean_ratio_minus_one"]
    assert f"mean ratio - 1 is {shift['value']:.2g} [{shift['low']:.2g}, {shift['high']:.2g}]" in confirm("0.18.1")


def test_the_second_model_runner_has_another_sampler_and_gets_no_figure():
    assert measured("0.32.0") is not None
    assert "Measured" not in confirm("0.32.0")
    assert "Measured" in confirm("0.32.0", machine={"platform": "cpu"})


def test_a_release_that_was_not_measured_gets_no_figure():
    assert measured("0.33.0") is None
    assert "Measured" not in confirm("0.33.0", machine={"platform": "cpu"})
