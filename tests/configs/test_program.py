"""A file whose name no file can have is not there."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.program import program_source
from rlaudit.configs.source import Source


@pytest.mark.parametrize("name", ["a" * 5000, "src/" + "b" * 300])
def test_a_program_of_that_name_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    source = Source(str(tmp_path / "run.sh"), f"python {name}.py --use_vllm true\n")
    assert [program_source(source, command) for command in source.commands] == [None] * len(source.commands)


def test_a_runtime_environment_of_that_name_is_none(tmp_path: Path) -> None:
    command = "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm"
    text = f"export VLLM_USE_V1=0\nray job submit --runtime-env={'[' * 5000} -- {command}\n"
    (config,) = declared()["verl"].read(Source(str(tmp_path / "run.sh"), text), Version("0.18.1"))
    assert "VLLM_USE_V1" not in config.environment
