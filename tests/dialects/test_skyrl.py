import pytest
from reading import read_all, read_one, rewritten, source_of

from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

DIALECT = declared()["skyrl"]

SCRIPT = r"""#!/bin/bash
export VLLM_LOGGING_LEVEL=INFO
uv run -m skyrl.train.entrypoints.main_base \
  trainer.policy.model.path=org/policy \
  trainer.algorithm.off_policy_correction.tis_ratio_type=token \
  generator.sampling_params.temperature=0.6 \
  generator.inference_engine.num_engines=$ENGINES \
  generator.inference_engine.enable_prefix_caching=false \
  generator.inference_engine.enable_chunked_prefill=false \
  generator.inference_engine.engine_init_kwargs.max_logprobs=4 \
  generator.inference_engine.engine_init_kwargs.enable_prefx_caching=false
"""

LEGACY = """\
trainer:
  policy:
    model:
      path: org/policy
  algorithm:
    use_tis: true
generator:
  num_inference_engines: 2
  backend: vllm
  inference_engine_tensor_parallel_size: 4
  enable_chunked_prefill: false
  engine_init_kwargs: {}
  sampling_params:
    repetition_penalty: 1.2
"""


def test_a_written_false_arrives() -> None:
    config = read_one(DIALECT, SCRIPT, "0.26.0", "run.sh")
    setting = config.engine["enable_prefix_caching"]
    assert setting.value is False and setting.place is not None and setting.place.line == 8


def test_a_misspelt_key_of_engine_init_kwargs_vanishes() -> None:
    lost = {one.name: one for one in read_one(DIALECT, SCRIPT, "0.26.0", "run.sh").lost}
    assert lost["enable_prefx_caching"].loss is Loss.UNKNOWN_KEY
    assert lost["enable_chunked_prefill"].loss is Loss.NOT_PASSED


def test_passthrough_wins_and_reaches_the_engine() -> None:
    assert read_one(DIALECT, SCRIPT, "0.26.0", "run.sh").engine["max_logprobs"].value == 4


def test_nothing_sets_logprobs_mode_and_generation_config_is_vllms() -> None:
    config = read_one(DIALECT, SCRIPT, "0.26.0", "run.sh")
    assert "logprobs_mode" not in config.engine
    assert config.engine["generation_config"].value == "vllm"


def test_facts_of_the_trainer_follow_the_overrides() -> None:
    config = read_one(DIALECT, SCRIPT, "0.26.0", "run.sh")
    assert config.facts.importance_sampling_mode == "token"
    assert isinstance(config.trainer["replicas"].value, Unknown)
    assert config.environment["VLLM_LOGGING_LEVEL"].value == "INFO"


def test_the_fully_asynchronous_trainer_keeps_requests_and_the_cache() -> None:
    script = SCRIPT.replace("  trainer.policy", "  trainer.fully_async.max_staleness_steps=4 \\\n  trainer.policy")
    config = read_one(DIALECT, script, "0.26.0", "run.sh")
    assert (config.facts.weight_updates, config.facts.pause_mode) == ("in flight", "keep")
    assert config.facts.pause_clears_cache is False
    assert isinstance(config.trainer["salts_prefix_cache"].value, Unknown)


def test_without_logprobs_there_is_no_mismatch_metric() -> None:
    script = SCRIPT.replace("sampling_params.temperature=0.6", "sampling_params.logprobs=null")
    assert read_one(DIALECT, script, "0.26.0", "run.sh").facts.logs_mismatch is False


def test_the_older_layout_is_read() -> None:
    config = read_one(DIALECT, LEGACY, "0.11.2")
    assert config.engine["tensor_parallel_size"].value == 4
    assert config.engine["enable_chunked_prefill"].value is False
    assert config.facts.replicas == 2
    assert config.facts.importance_sampling_correction is True
    assert {one.name for one in config.lost} == {"repetition_penalty"}


def test_settings_are_written_as_passthrough() -> None:
    config = read_one(DIALECT, SCRIPT, "0.26.0", "run.sh")
    text = rewritten(config, SCRIPT, "logprobs_mode", "processed_logprobs")
    tail = " \\\n  generator.inference_engine.engine_init_kwargs.logprobs_mode=processed_logprobs\n"
    assert text == SCRIPT.rstrip("\n") + tail
    legacy = rewritten(read_one(DIALECT, LEGACY, "0.11.2"), LEGACY, "logprobs_mode", "processed_logprobs")
    assert "engine_init_kwargs: {logprobs_mode: processed_logprobs}" in legacy


def test_a_plus_is_written_where_hydra_reads_it_and_nowhere_else() -> None:
    flat = "python -m skyrl_train.entrypoints.main_base generator.num_inference_engines=1 generator.backend=vllm\n"
    text = rewritten(read_one(DIALECT, flat, "0.11.2", "run.sh"), flat, "seed", 1)
    assert text.rstrip().endswith(" +generator.engine_init_kwargs.seed=1")
    plus = SCRIPT.replace("  generator.inference_engine.engine", "  +generator.inference_engine.engine")
    config = read_one(DIALECT, plus, "0.26.0", "run.sh")
    assert {lost.name for lost in config.lost if "takes no `+`" in lost.reason} == {
        "max_logprobs",
        "enable_prefx_caching",
    }


def test_another_backend_gives_no_config() -> None:
    assert read_all(DIALECT, LEGACY.replace("backend: vllm", "backend: sglang"), "0.11.2") == ()


def test_what_is_no_skyrl_config_is_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("generator:\n  name: inference_engine\n"))
    assert not DIALECT.recognise(source_of("echo generator.inference_engine\n", "run.sh"))


def test_options_of_the_http_endpoint_are_no_misspelt_engine_arguments() -> None:
    text = SCRIPT.replace("max_logprobs=4", "tool_call_parser=hermes")
    config = read_one(DIALECT, text, "0.18.1", "run.sh")
    assert "tool_call_parser" not in {one.name for one in config.lost} | config.engine.keys()
    assert "engine_init_kwargs.tool_call_parser: of the HTTP endpoint, no argument of the engine" in config.not_seen


@pytest.mark.parametrize(("ranks", "executor"), [("1", "uni"), ("4", "ray"), ("$TP", None)])
def test_several_ranks_run_on_ray_s_executor(ranks: str, executor: str | None) -> None:
    command = "python -m skyrl_train.entrypoints.main_base generator.backend=vllm generator.gpu_memory_utilization=0.8"
    text = f"{command} generator.inference_engine_tensor_parallel_size={ranks}\n"
    said = read_one(DIALECT, text, "0.18.1", "run.sh").engine["distributed_executor_backend"]
    assert said.value == executor if executor else isinstance(said.value, Unknown)
