from reading import read_one, source_of

from rlaudit.configs.dialects.rllm import DIALECT
from rlaudit.configs.dialects.verl.read import DIALECT as VERL

YAML = """\
defaults:
  - /ppo_trainer
  - _self_
actor_rollout_ref:
  rollout:
    mode: async
    temperature: 1.0
    calculate_log_probs: true
async_training:
  partial_rollout: false
rllm:
  rollout:
    train:
      temperature: 0.6
      top_p: null
  algorithm:
    rollout_correction:
      tis_mode: token
"""


def test_it_is_more_specific_than_verl_and_both_recognise_the_file() -> None:
    assert DIALECT.recognise(source_of(YAML)) and VERL.recognise(source_of(YAML))
    assert DIALECT.specific > VERL.specific


def test_rllms_keys_are_mirrored_over_verls() -> None:
    config = read_one(DIALECT, YAML, "0.22.1")
    assert config.framework == "rllm"
    assert config.sampling["temperature"].value == 0.6
    assert config.sampling["top_p"].value == 1.0
    assert config.says("importance_sampling_mode") == "token"


def test_weights_move_between_rollouts_unless_rllm_trains_asynchronously() -> None:
    assert read_one(DIALECT, YAML, "0.22.1").says("weight_updates") == "between rollouts"
    flying = YAML.replace("rllm:\n", "rllm:\n  async_training:\n    enable: true\n    partial_rollout: true\n")
    assert read_one(DIALECT, flying, "0.22.1").says("weight_updates") == "in flight"


def test_a_script_with_rllms_overrides_is_read() -> None:
    script = (
        "python3 -m examples.train \\\n    rllm.rollout.train.temperature=0.5 \\\n"
        "    actor_rollout_ref.rollout.name=vllm\n"
    )
    config = read_one(DIALECT, script, "0.22.1", "train.sh")
    assert config.sampling["temperature"].value == 0.5


def test_a_verl_config_without_rllms_keys_is_verls() -> None:
    assert not DIALECT.recognise(source_of(YAML[: YAML.index("rllm:")]))


def test_the_mismatch_is_logged_wherever_rollouts_come_with_logprobs() -> None:
    direct = YAML.replace("  rollout:\n    mode", "  actor:\n    use_rollout_log_probs: true\n  rollout:\n    mode")
    for text in (YAML, direct):
        config = read_one(DIALECT, text, "0.22.1")
        assert config.says("logs_mismatch") is True and "offpolicy" in config.trainer["logs_mismatch"].note
        assert config.says("recomputes_old_logprobs") is True


def test_a_metric_that_compares_the_rollout_with_itself_is_none() -> None:
    text = YAML.replace("      tis_mode: token", "      bypass_mode: true")
    fact = read_one(DIALECT, text, "0.22.1").trainer["logs_mismatch"]
    assert fact.value is False and "zero" in fact.note
