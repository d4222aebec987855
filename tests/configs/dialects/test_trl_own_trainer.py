"""A project's own copy of a TRL trainer, found from the program that starts it."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.dialects.trl.read import DIALECT
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Unknown

PROGRAM = """\
from trl import GRPOConfig
from own.trainer import OwnGRPOTrainer, OtherGRPOTrainer

def main(args):
    trainer = OwnGRPOTrainer(args)
"""
TRAINER = """\
from unittest.mock import patch

from transformers import Trainer
from vllm import LLM, SamplingParams

class OwnGRPOTrainer(Trainer):
    def __init__(self, args):
        self.use_vllm = args.use_vllm
        if self.use_vllm:
            if self.accelerator.is_main_process:
                profiling = patch("vllm.worker.worker.Worker._assert_memory_footprint_increased_during_profiling")
                with profiling:
                    self.llm = LLM(
                        model=args.model,
                        device="cuda:1",
                        gpu_memory_utilization=self.args.vllm_gpu_memory_utilization,
                        dtype=torch.bfloat16,
                        enable_prefix_caching=True,
                        enforce_eager=True,
                        max_model_len=args.max_completion_length,
                    )
                self.sampling_params = SamplingParams(temperature=args.temperature, top_p=0.9, max_tokens=args.longest)
        if args.sparse:
            from vllm.worker.worker import Worker

    def step(self, logits):
        if self.state.global_step != self._last:
            if self.accelerator.is_main_process:
                model = self.llm.llm_engine.model_executor.driver_worker.model_runner.model
                model.load_weights([])
        return logits / self.temperature
"""
COMMAND = (
    "torchrun --nproc_per_node 4 src/own/grpo.py --use_vllm True --temperature 0.7 --num_generations 8 --max_steps 5\n"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The layout of such projects: the script goes into a folder of the repository first."""
    home = tmp_path / "src" / "r1" / "src" / "own"
    (home / "trainer").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "scripts").mkdir()
    (home / "__init__.py").write_text("")
    (home / "grpo.py").write_text(PROGRAM)
    (home / "trainer" / "__init__.py").write_text(
        "from .own_trainer import OwnGRPOTrainer\nfrom .other import OtherGRPOTrainer\n"
    )
    (home / "trainer" / "own_trainer.py").write_text(TRAINER)
    (home / "trainer" / "other.py").write_text(TRAINER.replace("OwnGRPO", "OtherGRPO").replace("0.9", "0.5"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str, vllm: str, path: str = "scripts/run.sh") -> RolloutConfig:
    (config,) = DIALECT.read(Source(path, text), Version(vllm))
    return config


@pytest.mark.usefixtures("project")
def test_the_engine_is_the_one_that_the_used_class_builds() -> None:
    config = read(COMMAND, "0.8.5")
    assert config.offline
    assert {name: config.engine[name].value for name in ("enable_prefix_caching", "enforce_eager", "dtype")} == {
        "enable_prefix_caching": True, "enforce_eager": True, "dtype": "bfloat16",
    }  # fmt: skip
    assert "trainer/own_trainer.py" in config.engine["enable_prefix_caching"].note
    assert isinstance(config.engine["gpu_memory_utilization"].value, Unknown)
    assert "seed" not in config.engine


@pytest.mark.usefixtures("project")
def test_an_option_that_it_hands_on_is_the_configs_and_one_that_it_does_not_is_lost() -> None:
    config = read(COMMAND.strip() + " --vllm_gpu_memory_utilization 0.6 --vllm_tensor_parallel_size 2\n", "0.8.5")
    assert config.engine["gpu_memory_utilization"].value == 0.6
    assert [(lost.name, lost.loss) for lost in config.lost] == [("tensor_parallel_size", Loss.NOT_PASSED)]


@pytest.mark.usefixtures("project")
def test_sampling_parameters_and_facts_are_of_its_file() -> None:
    config = read(COMMAND, "0.18.1")
    assert (config.sampling["temperature"].value, config.sampling["top_p"].value) == (0.7, 0.9)
    assert config.says("divides_by_temperature") is True
    assert config.says("uses_rollout_logprobs") is False
    assert config.says("resets_prefix_cache") is False


@pytest.mark.usefixtures("project")
def test_a_trainer_that_asks_a_server_builds_no_engine() -> None:
    config = read(COMMAND.strip() + " --vllm_mode server\n", "0.18.1")
    assert not config.offline


def test_two_classes_of_which_the_program_names_neither_settle_nothing(project: Path) -> None:
    (project / "src/r1/src/own/grpo.py").write_text(PROGRAM.replace("OwnGRPOTrainer(args)", "make(args)"))
    assert "enforce_eager" not in read(COMMAND, "0.8.5").engine


def test_a_program_that_builds_its_config_itself_is_followed_too(project: Path) -> None:
    path = project / "src/r1/src/own/grpo.py"
    path.write_text(PROGRAM + "    config = GRPOConfig(use_vllm=True, num_generations=8)\n")
    config = read(path.read_text(), "0.18.1", str(path))
    assert config.engine["enforce_eager"].value is True
