import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from vllm_settings import config_of, resolved

from rlaudit.settings.rollout_config import Origin
from rlaudit.unknown import Unknown
from rlaudit.vllm.catalogue import Catalogue, known_versions
from rlaudit.vllm.machine import MACHINES, machine_named
from rlaudit.vllm.resolve import resolution_rules, resolve

V0 = {"environment": {"VLLM_USE_V1": "0"}}


@pytest.mark.parametrize(
    ("name", "version", "machine", "said", "value"),
    [
        ("enable_prefix_caching", "0.8.5", "h100", V0, False),
        ("enable_prefix_caching", "0.8.5", "h100", {}, True),
        ("enable_prefix_caching", "0.18.1", "h100", {}, True),
        ("enable_prefix_caching", "0.18.1", "h100", {"enable_prefix_caching": False}, False),
        ("enable_chunked_prefill", "0.8.5", "h100", {**V0, "max_model_len": 8192}, False),
        ("enable_chunked_prefill", "0.10.2", "h100", {"enable_chunked_prefill": False}, True),
        ("enable_chunked_prefill", "0.11.1", "h100", {"enable_chunked_prefill": False}, False),
        ("async_scheduling", "0.13.0", "h100", {}, False),
        ("async_scheduling", "0.14.0", "h100", {}, True),
        ("async_scheduling", "0.18.1", "h100", {"async_scheduling": False}, False),
        ("async_scheduling", "0.18.1", "cpu", {"async_scheduling": True}, False),
        ("async_scheduling", "0.14.1", "h100", {"pipeline_parallel_size": 2}, False),
        ("async_scheduling", "0.18.1", "h100", {"distributed_executor_backend": "ray"}, False),
        ("async_scheduling", "0.21.0", "h100", {"distributed_executor_backend": "ray"}, True),
        ("async_scheduling", "0.18.1", "h100", {"speculative_config": {"method": "ngram"}}, False),
        ("max_num_seqs", "0.8.5", "h100", V0, 256),
        ("max_num_seqs", "0.8.5", "a100", {}, 1024),
        ("max_num_seqs", "0.9.1", "a100", {}, 256),
        ("max_num_seqs", "0.18.1", "l40s", {}, 256),
        ("max_num_seqs", "0.18.1", "h100", {"max_num_batched_tokens": 512}, 512),
        ("max_num_seqs", "0.18.1", "cpu", {"tensor_parallel_size": 2}, 256),
        ("max_num_batched_tokens", "0.8.5", "h100", {**V0, "max_model_len": 1024}, 2048),
        ("max_num_batched_tokens", "0.8.5", "h100", {**V0, "max_model_len": 9000}, 9000),
        ("max_num_batched_tokens", "0.18.1", "h100", {}, 8192),
        ("max_num_batched_tokens", "0.18.1", "h100", {"offline": True}, 16384),
        ("max_num_batched_tokens", "0.18.1", "a100", {"offline": True}, 8192),
        ("max_num_batched_tokens", "0.27.1", "b200", {}, 8192),
        ("max_num_batched_tokens", "0.28.0", "b200", {}, 16384),
        ("max_num_batched_tokens", "0.18.1", "h100", {"performance_mode": "throughput"}, 16384),
        ("seed", "0.8.5", "h100", {}, None),
        ("seed", "0.9.0", "h100", {}, 0),
        ("seed", "0.10.2", "h100", V0, None),
        ("seed", "0.18.1", "h100", {}, 0),
        ("enforce_eager", "0.8.5", "h100", {}, False),
        ("enforce_eager", "0.8.5", "cpu", {"enforce_eager": False}, True),
        ("cudagraph_mode", "0.8.5", "h100", V0, "V0 decode"),
        ("cudagraph_mode", "0.10.2", "h100", {}, "PIECEWISE"),
        ("cudagraph_mode", "0.11.0", "h100", {}, "FULL_AND_PIECEWISE"),
        ("cudagraph_mode", "0.18.1", "h100", {"enforce_eager": True}, "NONE"),
        ("cudagraph_mode", "0.18.1", "h100", {"optimization_level": 1}, "PIECEWISE"),
        ("cudagraph_mode", "0.18.1", "h100", {"compilation_config": {"cudagraph_mode": "full"}}, "FULL"),
        ("cudagraph_mode", "0.18.1", "h100", {"compilation_config": '{"mode": 0}'}, "NONE"),
        ("cudagraph_mode", "0.10.2", "h100", {"compilation_config": 0}, "NONE"),
        ("cudagraph_mode", "0.18.1", "cpu", {}, "NONE"),
        ("disable_cascade_attn", "0.8.5", "h100", V0, True),
        ("disable_cascade_attn", "0.17.1", "h100", {}, False),
        ("disable_cascade_attn", "0.18.0", "h100", {}, True),
        ("disable_cascade_attn", "0.18.0", "h100", {"disable_cascade_attn": False}, False),
        ("disable_cascade_attn", "0.32.0", "h100", {"disable_cascade_attn": False}, True),
        ("logprobs_semantics", "0.8.5", "h100", V0, "processed"),
        ("logprobs_semantics", "0.8.5", "h100", {}, "raw"),
        ("logprobs_semantics", "0.10.1.1", "h100", {"logprobs_mode": "processed_logprobs"}, "before temperature"),
        ("logprobs_semantics", "0.10.2", "h100", {"logprobs_mode": "processed_logprobs"}, "processed"),
        ("logprobs_semantics", "0.10.2", "h100", {**V0, "logprobs_mode": "raw_logprobs"}, "processed"),
        ("logprobs_semantics", "0.18.1", "h100", {"logprobs_mode": "raw_logits"}, "raw logits"),
        ("model_runner", "0.8.5", "h100", V0, "V0"),
        ("model_runner", "0.21.0", "h100", {}, "V1"),
        ("model_runner", "0.18.1", "h100", {"environment": {"VLLM_USE_V2_MODEL_RUNNER": "1"}}, "V2"),
        ("model_runner", "0.29.0", "h100", {}, "V2"),
        ("model_runner", "0.29.0", "h100", {"environment": {"VLLM_USE_V2_MODEL_RUNNER": "0"}}, "V1"),
        ("model_runner", "0.25.0", "h100", {"logprobs_mode": "raw_logits"}, "V1"),
        ("model_runner", "0.33.0", "cpu", {}, "V1"),
        ("flashinfer_sampler", "0.11.2", "h100", {}, False),
        ("flashinfer_sampler", "0.21.0", "h100", {}, True),
        ("flashinfer_sampler", "0.21.0", "h100", {"logprobs_mode": "processed_logprobs"}, False),
        ("flashinfer_sampler", "0.21.0", "h100", {"environment": {"VLLM_USE_FLASHINFER_SAMPLER": "0"}}, False),
        ("attention_backend", "0.8.5", "h100", {}, "FLASH_ATTN"),
        ("attention_backend", "0.8.5", "h100", {"dtype": "float32"}, "XFORMERS"),
        (
            "attention_backend",
            "0.12.0",
            "h100",
            {"environment": {"VLLM_ATTENTION_BACKEND": "FLASHINFER"}},
            "FLASHINFER",
        ),
        (
            "attention_backend",
            "0.15.0",
            "h100",
            {"environment": {"VLLM_ATTENTION_BACKEND": "FLASHINFER"}},
            "FLASH_ATTN",
        ),
        ("attention_backend", "0.18.1", "h100", {"attention_config": {"backend": "TRITON_ATTN"}}, "TRITON_ATTN"),
        ("attention_backend", "0.18.1", "b200", {}, "FLASHINFER"),
        ("fuse_allreduce_rms", "0.16.0", "h100", {"tensor_parallel_size": 4}, False),
        ("fuse_allreduce_rms", "0.17.0", "h100", {"tensor_parallel_size": 4}, True),
        ("fuse_allreduce_rms", "0.17.0", "h100", {}, False),
        (
            "fuse_allreduce_rms",
            "0.18.1",
            "h100",
            {"tensor_parallel_size": 4, "compilation_config": {"backend": "eager"}},
            False,
        ),
        ("fuse_allreduce_rms", "0.17.0", "a100", {"tensor_parallel_size": 4}, False),
        ("fuse_allreduce_rms", "0.18.1", "h100", {"tensor_parallel_size": 2, "data_parallel_size": 2}, False),
        ("fuse_allreduce_rms", "0.21.0", "h100", {"tensor_parallel_size": 2, "data_parallel_size": 2}, True),
        ("optimization_level", "0.12.0", "h100", {"enforce_eager": True}, 0),
        ("optimization_level", "0.17.0", "h100", {"enforce_eager": True}, 2),
        ("distributed_executor_backend", "0.18.1", "h100", {}, "uni"),
        ("distributed_executor_backend", "0.18.1", "h100", {"tensor_parallel_size": 2}, "mp"),
        ("distributed_executor_backend", "0.18.1", "h100", {"data_parallel_size": 2}, "mp"),
        ("block_size", "0.18.1", "h100", {}, 16),
        ("block_size", "0.18.1", "h100", {"dtype": "float32"}, 16),
        ("attention_backend", "0.8.5", "h100", {"dtype": "float32"}, "XFORMERS"),
        ("attention_backend", "0.10.2", "h100", {"dtype": "float32"}, "FLEX_ATTENTION"),
        ("attention_backend", "0.18.1", "h100", {"dtype": "float32"}, "TRITON_ATTN"),
        ("attention_backend", "0.11.0", "b300", {}, "FLASH_ATTN"),
        ("attention_backend", "0.18.1", "b300", {}, "FLASHINFER"),
        ("attention_backend", "0.18.1", "h100", {"kv_cache_dtype": "fp8"}, "FLASH_ATTN"),
        ("attention_backend", "0.18.1", "a100", {"kv_cache_dtype": "fp8"}, "FLASHINFER"),
        ("compilation_mode", "0.8.5", "h100", {"dtype": "float32"}, "NONE"),
        ("compilation_mode", "0.8.5", "h100", {"compilation_config": 0}, "VLLM_COMPILE"),
        ("compilation_mode", "0.10.1", "h100", {"compilation_config": 0}, "NONE"),
        ("compilation_mode", "0.18.1", "h100", {}, "VLLM_COMPILE"),
        ("compilation_mode", "0.18.1", "h100", {"enforce_eager": True}, "NONE"),
        ("compilation_mode", "0.18.1", "h100", {"optimization_level": 0}, "NONE"),
        (
            "compilation_mode",
            "0.18.1",
            "h100",
            {"compilation_config": {"mode": "dynamo_trace_once"}},
            "DYNAMO_TRACE_ONCE",
        ),
        ("compilation_mode", "0.18.1", "cpu", {}, "DYNAMO_TRACE_ONCE"),
        ("cudagraph_mode", "0.8.5", "h100", {"compilation_config": {"use_cudagraph": False}}, "PIECEWISE"),
        ("cudagraph_mode", "0.18.1", "h100", {"compilation_config": {"cudagraph_mode": "FULL"}}, "FULL"),
        ("cudagraph_mode", "0.18.1", "a100", {"compilation_config": {"cudagraph_mode": "FULL"}}, "FULL_AND_PIECEWISE"),
        ("cudagraph_mode", "0.18.1", "h100", {"compilation_config": {"mode": 0}}, "NONE"),
        ("cudagraph_mode", "0.32.0", "h100", {"compilation_config": {"mode": 0}}, "FULL_DECODE_ONLY"),
        ("cudagraph_mode", "0.18.1", "h100", {"attention_backend": "FLEX_ATTENTION"}, "PIECEWISE"),
        ("cudagraph_mode", "0.20.0", "h100", {"attention_backend": "FLEX_ATTENTION"}, "FULL_AND_PIECEWISE"),
        ("block_size", "0.18.1", "cpu", {}, 128),
        ("kv_cache_dtype", "0.13.0", "h100", {}, "auto"),
        ("gpu_memory_utilization", "0.19.1", "h100", {}, 0.9),
        ("gpu_memory_utilization", "0.20.0", "h100", {}, 0.92),
    ],
)
def test_a_value_left_open_is_what_the_release_makes_of_it(
    name: str, version: str, machine: str, said: dict[str, Any], value: Any
) -> None:
    assert resolved(version, machine, **said).value(name) == value


@pytest.mark.parametrize(
    ("version", "backend", "caches"), [("0.18.1", "FLASHINFER", False), ("0.32.0", "FLASH_ATTN", True)]
)
def test_batch_invariance_and_flashinfer_do_not_go_together(version: str, backend: str, caches: bool) -> None:
    resolution = resolved(version, "b200", environment={"VLLM_BATCH_INVARIANT": "1"})
    assert (resolution.value("attention_backend"), resolution.value("enable_prefix_caching")) == (backend, caches)


def test_blackwell_takes_flashinfer_for_certain_only_where_it_comes_with_the_release() -> None:
    assert isinstance(resolved("0.10.2", "b200").value("attention_backend"), Unknown)
    assert resolved("0.11.1", "b200").value("attention_backend") == "FLASHINFER"


def test_batch_invariance_may_take_compilation_away_where_products_are_tuned() -> None:
    invariant = {"VLLM_BATCH_INVARIANT": "1"}
    assert isinstance(resolved("0.31.0", environment=invariant).value("compilation_mode"), Unknown)
    assert resolved("0.30.0", environment=invariant).value("compilation_mode") == "VLLM_COMPILE"
    assert resolved("0.31.0", environment=invariant).value("cudagraph_mode") == "FULL_AND_PIECEWISE"


def test_scheduling_is_unknown_where_the_executor_may_be_ray_and_ray_did_not_support_it() -> None:
    executor = Unknown("ray or mp, by release", ("ray", "mp"))
    assert isinstance(resolved("0.18.1", distributed_executor_backend=executor).value("async_scheduling"), Unknown)
    assert resolved("0.21.0", distributed_executor_backend=executor).value("async_scheduling") is True
    assert isinstance(
        resolved("0.21.0", distributed_executor_backend=Unknown("a class")).value("async_scheduling"), Unknown
    )
    classes = Unknown("of which release", ("ExternalRay", "ExternalZeroMQ"))
    assert resolved("0.18.1", distributed_executor_backend=classes).value("async_scheduling") is False
    assert isinstance(resolved("0.21.0", distributed_executor_backend="ExternalRay").value("async_scheduling"), Unknown)
    assert resolved("0.18.1", tensor_parallel_size=Unknown("$TP")).value("async_scheduling") is True


def test_a_written_value_keeps_its_origin() -> None:
    setting = resolved("0.18.1", enable_prefix_caching=False).setting("enable_prefix_caching")
    assert (setting.origin, setting.written) == (Origin.FILE, False)


def test_a_value_that_vllm_overrules_shows_what_was_written() -> None:
    setting = resolved("0.10.2", enable_chunked_prefill=False).setting("enable_chunked_prefill")
    assert (setting.value, setting.written, setting.origin) == (True, False, Origin.ENGINE)
    assert "ignores a written false" in setting.note


def test_a_decision_names_the_line_of_its_own_release() -> None:
    old, new = (resolved(version).setting("async_scheduling").note for version in ("0.14.0", "0.18.1"))
    assert "vllm/config/vllm.py:" in old
    assert old != new
    assert "vllm/platforms/cpu.py:" in resolved("0.18.1", "cpu").setting("async_scheduling").note


def test_an_argument_that_the_release_does_not_have_is_none_and_says_so() -> None:
    setting = resolved("0.18.1", num_scheduler_steps=8).setting("num_scheduler_steps")
    assert (setting.value, setting.written, setting.origin) == (None, 8, Origin.FILE)
    assert setting.note == "vLLM 0.18.1 has no num_scheduler_steps"


def test_an_unknown_value_of_the_file_stays_unknown() -> None:
    unknown = Unknown("$CACHE is set nowhere")
    assert resolved("0.18.1", enable_prefix_caching=unknown).value("enable_prefix_caching") is unknown


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("version", known_versions()[::6], ids=str)
def test_every_rule_decides_or_says_why_it_cannot_for_any_unknown(version: Version, machine: str) -> None:
    said = {name: Unknown("$X") for name in Catalogue.at(version).engine}
    variables = {name: Unknown("$Y") for name in ("VLLM_USE_V1", "VLLM_ATTENTION_BACKEND", "VLLM_USE_V2_MODEL_RUNNER")}
    for resolution in (
        resolved(str(version), machine),
        resolved(str(version), machine, **said),
        resolved(str(version), machine, environment=variables),
    ):
        for name in resolution_rules():
            setting = resolution.setting(name)
            assert not isinstance(setting.value, Unknown) or setting.value.reason


ODD: tuple[dict[str, Any], ...] = (
    {"pipeline_parallel_size": 2, "speculative_config": {"method": "eagle3"}},
    {"speculative_config": '{"method": "ngram"}', "task": "embed", "tensor_parallel_size": "8"},
    {"compilation_config": '{"cudagraph_mode": "FULL"}', "max_model_len": -1, "runner": "pooling"},
    {"max_model_len": "auto", "optimization_level": "3", "max_num_seqs": "64", "seed": "x"},
    {"compilation_config": [1], "attention_config": "x", "speculative_config": "{broken", "dtype": 5},
    {"override_generation_config": '{"temperature": 0.5}', "kv_cache_dtype": 8, "quantization": ["gguf"]},
)


@pytest.mark.parametrize("said", ODD, ids=str)
@pytest.mark.parametrize("version", known_versions()[::4], ids=str)
def test_values_of_any_shape_are_resolved_without_an_error(version: Version, said: dict[str, Any]) -> None:
    for machine in ("h100", "t4", "cpu"):
        resolution = resolved(str(version), machine, **said)
        assert all(resolution.setting(name).name == name for name in resolution_rules())


def test_json_text_counts_as_the_object_it_is() -> None:
    text = resolved("0.18.1", override_generation_config='{"temperature": 0.5}', generation_config="vllm")
    assert text.value("request_defaults") == {"temperature": 0.5}
    assert resolved("0.9.0", speculative_config='{"method": "ngram"}').is_v1 is True
    assert resolved("0.9.0", speculative_config='{"method": "mlp_speculator"}').is_v1 is False


def test_a_rule_is_named_after_its_file() -> None:
    folder = Path(__file__).parents[2] / "rlaudit" / "vllm" / "resolution"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(resolution_rules())


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(
        json.dumps({"architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 4096, "torch_dtype": "float32"})
    )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "version", "value"),
    [
        ("dtype", "0.9.0", "float16"),
        ("dtype", "0.9.1", "bfloat16"),
        ("max_model_len", "0.18.1", 4096),
        ("model_runner", "0.22.0", "V2"),
        ("enable_chunked_prefill", "0.8.5", False),
        ("max_num_batched_tokens", "0.8.5", 4096),
        ("request_defaults", "0.18.1", {}),
    ],
)
def test_a_checkpoint_on_disk_settles_what_depends_on_it(name: str, version: str, value: Any, checkpoint: Path) -> None:
    assert resolved(version, model=str(checkpoint), **V0).value(name) == value


def test_a_hub_name_leaves_unknown_what_depends_on_the_checkpoint() -> None:
    resolution = resolved("0.22.0", model="somebody/a-tuned-model")
    for name in ("dtype", "max_model_len", "model_runner", "request_defaults"):
        assert isinstance(resolution.value(name), Unknown), name


def test_a_checkpoint_with_only_the_newer_dtype_key_is_a_trap_for_old_releases(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text(json.dumps({"dtype": "bfloat16"}))
    assert isinstance(resolved("0.8.5", model=str(checkpoint)).value("dtype"), Unknown)
    assert resolved("0.18.1", model=str(checkpoint)).value("dtype") == "bfloat16"


def test_a_cache_that_the_checkpoint_quantizes_is_not_called_auto(checkpoint: Path) -> None:
    quantized = {"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}}
    (checkpoint / "config.json").write_text(json.dumps(quantized))
    assert resolved("0.13.0", model=str(checkpoint)).value("kv_cache_dtype") == "auto"
    assert isinstance(resolved("0.14.0", model=str(checkpoint)).value("kv_cache_dtype"), Unknown)


def test_penalties_of_the_models_file_count_from_0_31_on(checkpoint: Path) -> None:
    (checkpoint / "generation_config.json").write_text(json.dumps({"top_p": 0.8, "presence_penalty": 1.5}))
    assert resolved("0.30.0", model=str(checkpoint)).value("request_defaults") == {"top_p": 0.8}
    assert resolved("0.31.0", model=str(checkpoint)).value("request_defaults") == {
        "top_p": 0.8,
        "presence_penalty": 1.5,
    }
    alone = resolved("0.31.0", model=str(checkpoint), generation_config="vllm")
    assert alone.value("request_defaults") == {}


def test_broken_checkpoint_files_are_as_good_as_none(checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text("{not json")
    assert isinstance(resolved("0.18.1", model=str(checkpoint)).value("dtype"), Unknown)


def test_in_an_actor_of_a_ray_placement_group_several_ranks_run_on_ray_and_are_not_scheduled_ahead():
    def placed(ranks: int, version: str) -> Any:
        config = replace(config_of(offline=True, tensor_parallel_size=ranks), placed_by_ray=True)
        return resolve(config, Catalogue.at(version), machine_named("h100"))

    assert placed(2, "0.18.1").value("distributed_executor_backend") == "ray"
    assert placed(2, "0.18.1").value("async_scheduling") is False
    assert placed(2, "0.21.0").value("async_scheduling") is True
    assert placed(1, "0.18.1").value("distributed_executor_backend") == "uni"
