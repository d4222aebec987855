from reading import read_all, read_one, rewritten, source_of

from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

DIALECT = declared()["roll"]

YAML = """\
seed: 11
pretrain: org/policy
response_length: 256
actor_train:
  model_args:
    dtype: bf16
actor_infer:
  model_args:
    dtype: fp16
  generating_args:
    max_new_tokens: ${response_length}
    temperature: 0.99
    top_p: 0.9
    top_k: 50
    num_return_sequences: 8
  strategy_args:
    strategy_name: vllm
    strategy_config:
      VLLM_USE_V1: 0
      sleep_level: 2
      enable_prefix_caching: false
      dtype: float32
  device_mapping: list(range(0,8))
  num_gpus_per_worker: 2
"""


def test_strategy_config_is_handed_over_after_the_strategys_own_keys_are_taken_out() -> None:
    config = read_one(DIALECT, YAML, "0.10.2")
    assert config.engine["enable_prefix_caching"].value is False
    assert not {"VLLM_USE_V1", "sleep_level"} & set(config.engine)
    assert config.environment["VLLM_USE_V1"].value == "0"
    assert config.engine["load_format"].value == "dummy"
    assert config.engine["seed"].value == 11


def test_dtype_comes_from_model_args_and_overrules_strategy_config() -> None:
    config = read_one(DIALECT, YAML, "0.10.2")
    assert config.engine["dtype"].value == "float16"
    (lost,) = config.lost
    assert (lost.name, lost.loss) == ("dtype", Loss.OVERRULED)
    assert config.facts.dtype == "bfloat16"


def test_the_trainer_does_not_divide_by_the_temperature() -> None:
    config = read_one(DIALECT, YAML, "0.10.2")
    assert config.facts.divides_by_temperature is False
    assert "logprobs_mode" not in config.engine
    assert config.facts.seeds_replicas is False
    assert config.facts.replicas == 4


def test_sampling_is_complete_and_a_filter_that_a_missing_file_may_set_is_unknown() -> None:
    text = YAML.replace("    top_k: 50\n", "")
    sampling = read_one(DIALECT, text, "0.10.2").sampling
    assert (sampling["max_tokens"].value, sampling["n"].value, sampling["min_p"].value) == (256, 8, 0.0)
    assert sampling["top_k"].value == 50
    inherits = read_one(DIALECT, "defaults: [base]\n" + text, "0.10.2")
    assert isinstance(inherits.sampling["top_k"].value, Unknown)


def test_asynchronous_generation_leaves_updates_unknown() -> None:
    for ratio in ("1", "${oc.env:RATIO}"):
        config = read_one(DIALECT, f"{YAML}async_generation_ratio: {ratio}\n", "0.10.2")
        assert isinstance(config.trainer["weight_updates"].value, Unknown)
    assert read_one(DIALECT, YAML, "0.10.2").facts.weight_updates == "between rollouts"


def test_the_correction_is_read() -> None:
    text = YAML + "train_infer_correction:\n  is_weight:\n    enabled: true\n"
    assert read_one(DIALECT, text, "0.10.2").facts.importance_sampling_correction is True
    assert read_one(DIALECT, YAML, "0.10.2").facts.importance_sampling_correction is False


def test_another_strategy_gives_no_config() -> None:
    assert read_all(DIALECT, YAML.replace("strategy_name: vllm", "strategy_name: sglang"), "0.10.2") == ()


def test_settings_are_written_to_strategy_config() -> None:
    config = read_one(DIALECT, YAML, "0.10.2")
    text = rewritten(config, YAML, "async_scheduling", False)
    assert "      dtype: float32\n      async_scheduling: false\n" in text


def test_what_is_no_roll_config_is_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("actor_infer: vllm\n"))


def test_the_executor_of_several_ranks_is_unknown() -> None:
    several = YAML.replace("      sleep_level: 2\n", "      tensor_parallel_size: 2\n")
    value = read_one(DIALECT, several, "0.10.2").engine["distributed_executor_backend"].value
    assert isinstance(value, Unknown) and "ray" in value.reason
    assert "distributed_executor_backend" not in read_one(DIALECT, YAML, "0.10.2").engine
    said = several.replace("      VLLM_USE_V1: 0\n", "      distributed_executor_backend: mp\n")
    assert read_one(DIALECT, said, "0.10.2").engine["distributed_executor_backend"].value == "mp"
