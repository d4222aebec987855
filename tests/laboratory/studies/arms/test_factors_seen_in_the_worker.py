"""Levels that are read from what an engine ran, never from what it was allowed."""

from typing import Any

import pytest

from rlaudit.laboratory.factor import ArmTrace, Observation
from rlaudit.laboratory.factors import batch_invariance, cascade_attention
from rlaudit.laboratory.treatment import Treatment

ALLOWED = {"disable_cascade_attn": False}


def trace(variables: dict[str, str] | None = None, **seen: Any) -> ArmTrace:
    return ArmTrace(
        treatment=Treatment("0.18.1", variables=variables or {}),
        resolved=seen.pop("resolved", {}),
        cached_tokens=0,
        prompt_tokens_per_round=0,
        rollout_head=None,
        trainer_head=None,
        head_because="",
        **seen,
    )


def cascade(resolved: dict[str, Any], counted: dict[str, int] | None) -> Observation:
    loaded = {"ran": {"batches": 40, "flashinfer_batches": 0, "cascade": counted, "graphs": None}}
    return cascade_attention.observe(trace(resolved=resolved, loaded=loaded))


def test_cascade_attention_that_is_allowed_and_never_used_is_not_on_and_says_what_prompts_it_needs() -> None:
    counted = {"considered": 40, "used": 0, "longest_prefix": 96, "most_requests": 24}
    seen = cascade(ALLOWED, counted)
    assert seen.level is None
    for part in ("none of 40 batches", "96 tokens", "24 requests", "share 256 tokens"):
        assert part in seen.because


def test_cascade_attention_is_on_where_batches_used_it() -> None:
    counted = {"considered": 40, "used": 12, "longest_prefix": 512, "most_requests": 24}
    assert cascade(ALLOWED, counted) == Observation("on", "12 of 40 batches used cascade attention")


def test_cascade_attention_that_is_forbidden_is_off() -> None:
    assert cascade({"disable_cascade_attn": True}, None).level == "off"


@pytest.mark.parametrize("loaded", [{}, {"ran": None}, {"ran": {"cascade": None}}])
def test_cascade_attention_that_nobody_counted_is_not_known(loaded: dict[str, Any]) -> None:
    assert cascade_attention.observe(trace(resolved=ALLOWED, loaded=loaded)).level is None


SAME = {"identical": True, "requests": 16, "tokens": 8, "differs_at": None, "by": 0.0}
OTHER = {"identical": False, "requests": 16, "tokens": 8, "differs_at": 3, "by": 2e-3}


@pytest.mark.parametrize(
    ("asked", "probe", "level"),
    [
        (True, SAME, "on"),
        (True, OTHER, "off"),
        (False, OTHER, "off"),
        (False, SAME, None),
        (True, {"error": "RuntimeError: the engine is gone"}, None),
        (True, {}, None),
    ],
)
def test_batch_invariance_is_on_where_a_request_alone_and_in_a_batch_agree_bit_for_bit(
    asked: bool, probe: dict[str, Any], level: str | None
) -> None:
    variables = {"VLLM_BATCH_INVARIANT": "1"} if asked else {}
    assert batch_invariance.observe(trace(variables, batch_probe=probe)).level == level


def test_with_tensor_parallel_workers_the_invariance_says_so() -> None:
    seen = trace({"VLLM_BATCH_INVARIANT": "1"}, batch_probe=OTHER, resolved={"tensor_parallel_size": 2})
    assert "2 tensor-parallel workers" in batch_invariance.observe(seen).because


@pytest.mark.parametrize(
    ("version", "dtype", "named"),
    [
        ("0.11.2", "bfloat16", None),
        ("0.12.0", "bfloat16", "FLASH_ATTN"),
        ("0.15.0", "float32", None),
        ("0.18.1", "bfloat16", "FLASH_ATTN"),
        ("0.18.1", "float32", "TRITON_ATTN"),
        ("0.26.0", "bfloat16", None),
        ("0.32.0", "float32", None),
    ],
)
def test_a_backend_is_named_only_where_the_release_wants_one_and_it_takes_the_dtype(
    version: str, dtype: str, named: str | None
) -> None:
    on = batch_invariance.set_level(Treatment(version, engine_args={"dtype": dtype}), "on")
    assert on.cuda_engine_args.get("attention_backend") == on.cuda_variables.get("VLLM_ATTENTION_BACKEND") == named
    assert on.variables["VLLM_BATCH_INVARIANT"] == "1"


@pytest.mark.parametrize(
    "words",
    [
        "VLLM batch_invariant mode requires an attention backend in ['FLASH_ATTN'], but got 'None'.",
        "Selected backend AttentionBackendEnum.FLASH_ATTN is not valid for this configuration. Reason: ['head size']",
    ],
)
def test_an_engine_that_refuses_the_invariance_is_unsupported_in_its_own_words(words: str) -> None:
    assert batch_invariance.FACTOR.refusal is not None
    assert batch_invariance.FACTOR.refusal.search(words)
