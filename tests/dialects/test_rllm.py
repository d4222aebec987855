from pathlib import Path

import pytest
from reading import put, read_file, read_one, source_of

from rlaudit.audit.action import take
from rlaudit.dialects.declared import declared

DIALECT, VERL = declared()["rllm"], declared()["verl"]
ROLLOUT = "actor_rollout_ref.rollout"
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
    assert config.facts.importance_sampling_mode == "token"


def test_weights_move_between_rollouts_unless_rllm_trains_asynchronously() -> None:
    assert read_one(DIALECT, YAML, "0.22.1").facts.weight_updates == "between rollouts"
    flying = YAML.replace("rllm:\n", "rllm:\n  async_training:\n    enable: true\n    partial_rollout: true\n")
    assert read_one(DIALECT, flying, "0.22.1").facts.weight_updates == "in flight"


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
        assert config.facts.logs_mismatch is True and "offpolicy" in config.trainer["logs_mismatch"].note
        assert config.facts.recomputes_old_logprobs is True


def test_a_metric_that_compares_the_rollout_with_itself_is_none() -> None:
    text = YAML.replace("      tis_mode: token", "      bypass_mode: true")
    fact = read_one(DIALECT, text, "0.22.1").trainer["logs_mismatch"]
    assert fact.value is False and "zero" in fact.note


@pytest.mark.parametrize(
    ("place", "where"),
    [("pkg://pack.settings.deep", "pack/settings/deep"), ("../settings", "runs/settings"), (".", "runs/here")],
)
@pytest.mark.parametrize(
    ("given", "temperature"),
    [
        ("", 0.6),
        ("actor_rollout_ref.rollout.temperature=0.4", 0.4),
        ("actor_rollout_ref.rollout.temperature=0.4 rllm.rollout.train.temperature=0.3", 0.3),
    ],
)
def test_the_config_that_the_program_names_lies_below_the_command(
    tmp_path: Path, place: str, where: str, given: str, temperature: float
) -> None:
    main = f'@hydra.main(config_path="{place}", config_name="all", version_base=None)\ndef main(config): ...\n'
    files = {
        ".git/HEAD": "",
        "runs/here/train.py": main,
        f"{where}/all.yaml": YAML,
        "runs/go.sh": f"python -m runs.here.train rllm.x=1 {ROLLOUT}.gpu_memory_utilization=0.5 {given}\n",
    }
    put(tmp_path, files)
    config = read_file(DIALECT, tmp_path / "runs/go.sh", "0.22.1")
    assert config.sampling["temperature"].value == temperature
    assert config.engine["gpu_memory_utilization"].value == 0.5
    assert config.facts.importance_sampling_mode == "token"
    assert not any("the config that the command starts from" in one for one in config.not_seen)


def test_releases_that_are_verls_are_called_verls() -> None:
    releases = read_one(DIALECT, YAML, "0.18.1").releases
    assert releases is not None and releases.of == "verl"
    assert take("rllm", releases, "0.18.1").of.startswith("verl ")
