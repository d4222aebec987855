"""What `ray job submit` hands to the program that it starts."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.source import Source
from rlaudit.settings.rollout_config import Loss, RolloutConfig

PROGRAM = "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm"


def config_of(script: Path, command: str) -> RolloutConfig:
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f"export VLLM_USE_V1=0\n{command}\n")
    (config,) = declared()["verl"].read(Source(str(script), script.read_text()), Version("0.18.1"))
    return config


@pytest.fixture
def repository(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/runtime_env.yaml").write_text("env_vars:\n  VLLM_USE_V1: '1'\n  OTHER: '2'\n")
    return tmp_path


@pytest.mark.parametrize("named", [
    "conf/runtime_env.yaml", "./conf/runtime_env.yaml", '"${PWD}/conf/runtime_env.yaml"',
    '"${RUNTIME_ENV:-${PWD}/conf/runtime_env.yaml}"',
])  # fmt: skip
def test_the_variables_of_a_runtime_environment_in_a_file_hold_and_the_shell_s_do_not(repository, named):
    config = config_of(repository / "recipe/run.sh", f"ray job submit --runtime-env={named} -- {PROGRAM}")
    assert config.environment["VLLM_USE_V1"].value == "1"
    assert config.environment["VLLM_USE_V1"].place.path == str(repository / "conf/runtime_env.yaml")
    assert "OTHER" not in config.environment
    assert [(lost.name, lost.written, lost.loss) for lost in config.lost] == [("VLLM_USE_V1", "0", Loss.NOT_PASSED)]
    assert str(repository / "conf/runtime_env.yaml") in config.parts


def test_a_runtime_environment_on_the_command_line_is_read_for_verl_as_well(repository):
    given = """--runtime-env-json='{"env_vars": {"VLLM_USE_V1": "1"}}'"""
    config = config_of(repository / "run.sh", f"ray job submit {given} -- {PROGRAM}")
    assert config.environment["VLLM_USE_V1"].value == "1"


def test_a_file_that_is_not_there_is_named_and_nothing_is_taken_from_the_shell_instead(repository):
    config = config_of(repository / "run.sh", f"ray job submit --runtime-env=elsewhere.yaml -- {PROGRAM}")
    assert "VLLM_USE_V1" not in config.environment
    assert any("elsewhere.yaml is not found" in sentence for sentence in config.not_seen)


def test_a_program_that_no_job_runs_has_the_variables_of_the_shell(repository):
    assert config_of(repository / "run.sh", PROGRAM).environment["VLLM_USE_V1"].value == "0"


def test_a_path_that_no_file_can_have_is_none(repository):
    config = config_of(repository / "run.sh", f"ray job submit --runtime-env={'[' * 5000} -- {PROGRAM}")
    assert "VLLM_USE_V1" not in config.environment
