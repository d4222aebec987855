"""Whether an engine compiles and captures, as its loaded configuration says."""

from typing import Any

import pytest

from rlaudit.laboratory.factor import ArmTrace
from rlaudit.laboratory.studies.arms.plan import known_factors
from rlaudit.laboratory.treatment import Treatment


def level(factor: str, in_worker: dict[str, Any] | None = None, **resolved: Any) -> str | None:
    trace = ArmTrace(
        treatment=Treatment("0.18.1"),
        resolved={"engine": "V1", "device": "cuda", "enforce_eager": False, **resolved},
        loaded=in_worker or {},
        cached_tokens=0,
        prompt_tokens_per_round=0,
        rollout_head=None,
        trainer_head=None,
        head_because="",
    )
    return known_factors()[factor].observe(trace).level


@pytest.mark.parametrize(
    ("resolved", "compiles"),
    [
        ({"compilation_mode": 3, "compile_backend": "", "use_inductor": True}, "on"),  # 0.8.5 to 0.11.0
        ({"compilation_mode": 3, "compile_backend": "", "use_inductor": False}, "off"),
        ({"compilation_mode": 0, "compile_backend": "", "use_inductor": True}, "off"),
        ({"compilation_mode": 2, "compile_backend": "inductor", "use_inductor": True}, "on"),  # 0.10.0 on a CPU
        ({"compilation_mode": 2, "compile_backend": "", "use_inductor": True}, "off"),
        ({"compilation_mode": "VLLM_COMPILE", "compile_backend": "inductor"}, "on"),
        ({"compilation_mode": "VLLM_COMPILE", "compile_backend": "eager"}, "off"),
        ({"compilation_mode": "DYNAMO_TRACE_ONCE", "compile_backend": "inductor"}, "on"),  # 0.18.1 on a CPU
        ({"compilation_mode": "NONE", "compile_backend": "inductor"}, "off"),
    ],
)
def test_compiling_is_what_inductor_does(resolved: dict[str, Any], compiles: str) -> None:
    assert level("compile", **resolved) == compiles


@pytest.mark.parametrize(
    ("resolved", "captures"),
    [
        ({"cudagraph_mode": "FULL_AND_PIECEWISE"}, "on"),
        ({"cudagraph_mode": "NONE"}, "off"),
        ({"use_cudagraph": True, "compilation_mode": 3}, "on"),  # 0.8.5
        ({"use_cudagraph": False, "compilation_mode": 3}, "off"),
        ({"use_cudagraph": True, "compilation_mode": 0}, "off"),
        ({"engine": "V0", "use_cudagraph": False}, "on"),
        ({"engine": "V0", "enforce_eager": True}, "off"),
        ({"device": "cpu", "cudagraph_mode": "FULL"}, "off"),
    ],
)
def test_graphs_are_captured_on_cuda_where_the_loaded_configuration_says_so(
    resolved: dict[str, Any], captures: str
) -> None:
    assert level("cudagraphs", **resolved) == captures


@pytest.mark.parametrize(
    ("mode", "graphs", "captures"),
    [
        ("FULL_AND_PIECEWISE", {"FULL": 30, "NONE": 2}, "on"),
        ("PIECEWISE", {"NONE": 32}, None),
        ("PIECEWISE", None, "on"),
        ("NONE", {"NONE": 32}, "off"),
        ("NONE", None, "off"),
    ],
)
def test_what_ran_in_the_worker_counts_before_what_the_configuration_allows(
    mode: str, graphs: dict[str, int] | None, captures: str | None
) -> None:
    in_worker = {"features": {"cudagraph_mode": mode}, "ran": {"batches": 32, "graphs": graphs}}
    assert level("cudagraphs", in_worker, cudagraph_mode="FULL_AND_PIECEWISE") == captures
