from typing import Any

from rlaudit.laboratory.studies.arms.rollout import flashinfer_not_seen
from rlaudit.laboratory.treatment import Treatment
from rlaudit.vllm.machine import machine_named

H100 = machine_named("h100")
FILTERED = {"temperature": 1.0, "top_p": 0.9}


def treatment(version: str, sampling: dict[str, Any], **engine_args: Any) -> Treatment:
    return Treatment(version, sampling=sampling, engine_args=engine_args)


def test_a_release_that_would_draw_a_filter_with_flashinfer_is_named_once() -> None:
    arms = [treatment(version, FILTERED) for version in ("0.32.0", "0.21.0", "0.32.0", "0.18.1")]
    (line,) = flashinfer_not_seen(arms, H100)
    assert line.startswith("the FlashInfer sampler of vLLM 0.21.0, 0.32.0: requests are seeded")


def test_where_the_kernel_would_not_run_anyway_nothing_is_said() -> None:
    assert flashinfer_not_seen([treatment("0.32.0", {"temperature": 1.0})], H100) == []
    processed = treatment("0.32.0", FILTERED, logprobs_mode="processed_logprobs")
    assert flashinfer_not_seen([processed], H100) == []
    assert flashinfer_not_seen([treatment("0.32.0", FILTERED)], machine_named("cpu")) == []
    assert flashinfer_not_seen([treatment("0.18.1", FILTERED)], H100) == []
