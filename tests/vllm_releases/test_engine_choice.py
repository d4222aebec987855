from dataclasses import replace
from typing import Any

import pytest
from vllm_settings import config_of, resolved

from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import NPU, ROCM, Machine
from rlaudit.vllm.resolve import resolve


def test_v1_is_the_default_of_0_8_5_on_a_recent_gpu() -> None:
    resolution = resolved("0.8.5")
    assert resolution.is_v1 is True
    assert "vllm/engine/arg_utils.py:" in resolution.why_engine


@pytest.mark.parametrize(
    "said",
    [
        {"environment": {"VLLM_USE_V1": "0"}},
        {"environment": {"VLLM_USE_V1": False}},
        {"environment": {"VLLM_ATTENTION_BACKEND": "XFORMERS"}},
        {"dtype": "float32"},
        {"scheduling_policy": "priority"},
        {"num_scheduler_steps": 8},
        {"kv_cache_dtype": "int8"},
        {"pipeline_parallel_size": 2},
        {"speculative_config": {"method": "ngram"}},
        {"max_num_partial_prefills": 2},
        {"quantization": "gguf"},
    ],
)
def test_0_8_5_falls_back_to_v0_without_an_error(said: dict[str, Any]) -> None:
    assert resolved("0.8.5", **said).is_v1 is False


@pytest.mark.parametrize(
    ("version", "machine", "said", "is_v1"),
    [
        ("0.8.5", "t4", {}, False),
        ("0.10.2", "t4", {}, True),
        ("0.8.5", "cpu", {}, False),
        ("0.9.0", "cpu", {}, False),
        ("0.9.1", "cpu", {}, True),
        ("0.8.5", "h100", {"kv_cache_dtype": "fp8"}, True),
        ("0.8.5", "a100", {"kv_cache_dtype": "fp8"}, False),
        ("0.9.0", "h100", {"pipeline_parallel_size": 2, "distributed_executor_backend": "mp"}, True),
        ("0.9.2", "h100", {"dtype": "float32"}, True),
        ("0.10.0", "h100", {"speculative_config": {"method": "ngram"}}, True),
        ("0.8.5", "t4", {"environment": {"VLLM_USE_V1": "1"}}, True),
    ],
)
def test_the_fallbacks_shrink_release_by_release(version: str, machine: str, said: dict[str, Any], is_v1: bool) -> None:
    assert resolved(version, machine, **said).is_v1 is is_v1


@pytest.mark.parametrize("machine", [ROCM, NPU], ids=["rocm", "npu"])
@pytest.mark.parametrize(
    ("version", "variable", "is_v1"),
    [("0.8.5", None, False), ("0.9.1", None, False), ("0.9.2", None, True), ("0.8.5", "1", True)],
)
def test_other_devices_than_nvidias_run_v0_until_0_9_2_unless_v1_is_asked_for(
    machine: Machine, version: str, variable: str | None, is_v1: bool
) -> None:
    config = config_of(environment={} if variable is None else {"VLLM_USE_V1": variable})
    assert resolve(config, Catalogue.at(version), machine).is_v1 is is_v1


def test_a_program_may_ask_for_v1_on_such_a_device_when_it_runs() -> None:
    config = replace(config_of(), path="serve.py")
    resolution = resolve(config, Catalogue.at("0.8.5"), ROCM)
    assert resolution.is_v1 is None and "unless the program sets VLLM_USE_V1" in str(resolution.value("engine"))


def test_v0_is_gone_in_0_11_whatever_the_variable_says() -> None:
    assert resolved("0.11.0", environment={"VLLM_USE_V1": "0"}).is_v1 is True


def test_an_unknown_variable_leaves_the_engine_unknown_and_what_depends_on_it() -> None:
    resolution = resolved("0.8.5", environment={"VLLM_USE_V1": Unknown("$USE_V1 is set nowhere")})
    assert resolution.is_v1 is None
    for name in ("enable_prefix_caching", "max_num_seqs", "logprobs_semantics", "cudagraph_mode"):
        value = resolution.value(name)
        assert isinstance(value, Unknown)
        assert "$USE_V1" in value.reason


def test_an_unknown_condition_leaves_the_engine_unknown_unless_another_one_decides() -> None:
    unknown = Unknown("$STEPS")
    assert resolved("0.8.5", num_scheduler_steps=unknown).is_v1 is None
    assert resolved("0.8.5", num_scheduler_steps=unknown, dtype="float32").is_v1 is False
