from dataclasses import replace

from vllm_settings import config_of, resolved

from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue
from rlaudit.vllm.machine import ROCM
from rlaudit.vllm.resolve import resolve


def test_v1_is_the_default_of_0_8_5_on_a_recent_gpu() -> None:
    resolution = resolved("0.8.5")
    assert resolution.is_v1 is True
    assert "vllm/engine/arg_utils.py:" in resolution.why_engine


def test_a_program_may_ask_for_v1_on_such_a_device_when_it_runs() -> None:
    config = replace(config_of(), path="serve.py")
    resolution = resolve(config, Catalogue.at("0.8.5"), ROCM)
    assert resolution.is_v1 is None and "unless the program sets VLLM_USE_V1" in str(resolution.value("engine"))


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
