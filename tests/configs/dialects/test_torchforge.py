from reading import read_one, rewritten, source_of

from rlaudit.configs.dialects.torchforge import DIALECT
from rlaudit.configs.rollout_config import Loss

YAML = """\
model: org/policy
policy:
  engine_args:
    model: ${model}
    tensor_parallel_size: 2
    enable_prefix_caching: false
    enable_prefix_cache: false
  sampling_params:
    n: 4
    temperature: 0.7
trainer:
  training:
    dtype: bfloat16
services:
  policy:
    num_replicas: 3
"""


def test_engine_args_are_vllms_and_unknown_ones_are_filtered_out() -> None:
    config = read_one(DIALECT, YAML, "0.10.0")
    assert config.engine["enable_prefix_caching"].value is False
    (lost,) = config.lost
    assert (lost.name, lost.loss) == ("enable_prefix_cache", Loss.UNKNOWN_KEY)
    assert config.model is not None and config.model.value == "org/policy"


def test_the_mismatch_is_never_seen() -> None:
    config = read_one(DIALECT, YAML, "0.10.0")
    assert config.says("logs_mismatch") is False
    assert config.says("uses_rollout_logprobs") is False
    assert config.says("resets_prefix_cache") is True
    assert config.says("replicas") == 3


def test_settings_are_written_to_engine_args() -> None:
    config = read_one(DIALECT, YAML, "0.10.0")
    text = rewritten(config, YAML, "logprobs_mode", "processed_logprobs")
    assert read_one(DIALECT, text, "0.10.0").engine["logprobs_mode"].value == "processed_logprobs"


def test_the_generator_actor_is_read_as_well() -> None:
    assert read_one(DIALECT, YAML.replace("policy:", "generator:"), "0.10.0").says("replicas") == 3


def test_what_has_no_engine_args_is_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("policy:\n  engine_args: none\n"))
