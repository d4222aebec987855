"""Where a framework's own source is there, its lines decide and not a table of releases."""

from pathlib import Path

import pytest
from packaging.version import Version
from reading import put

from rlaudit.configs.dialects.declared import declared
from rlaudit.configs.framework_source.checkout import folders_of
from rlaudit.configs.source import Source
from rlaudit.errors import UsageError
from rlaudit.settings.rollout_config import Origin, RolloutConfig
from rlaudit.unknown import Unknown

OPEN_INSTRUCT, TRL, VERL = (declared()[name] for name in ("open_instruct", "trl", "verl"))

NOW = Version("0.18.1")
COLOCATED = "use_vllm: true\nvllm_mode: colocate\ntemperature: 0.7\nnum_generations: 8\n"
# A trainer that builds its engine like TRL's, with what is asked for in question left open.
TRAINER = """
class GRPOTrainer:
    def __init__(self, args):
        self.llm = LLM(
            model=args.model,
            tensor_parallel_size=args.vllm_tensor_parallel_size,
            gpu_memory_utilization=args.vllm_gpu_memory_utilization,
            max_num_seqs=args.batch * 2,
            enforce_eager=True,
            distributed_executor_backend="external_launcher",
            {more}
        )

    def logprobs(self, logits):
        return logits / self.temperature
"""
CONFIG = """
from dataclasses import dataclass, field

@dataclass
class GRPOConfig:
    vllm_gpu_memory_utilization: float = field(default=0.42, metadata={"help": "share"})
    vllm_tensor_parallel_size: int = field(
        default=1, metadata={})
    vllm_model_impl: str = field( default="vllm")
    vllm_importance_sampling_correction: bool = field(default=False)
    temperature: float = 1.25
"""
MAIN = """
import hydra

@hydra.main(config_path="config", config_name="ppo_trainer", version_base=None)
def main(config):
    run(config)
"""
PPO = """
defaults:
  - backend: fsdp
  - actor@actor_rollout_ref.actor: ${backend}_actor
  - rollout@actor_rollout_ref.rollout: rollout
  - _self_
algorithm: {rollout_correction: null}
"""


def trl(root: Path, more: str = "", version: str = "0.23.0") -> Path:
    """A checkout that looks like TRL's."""
    return put(
        root,
        {
            "trl/__init__.py": "",
            "trl/VERSION": version,
            "trl/trainer/grpo_trainer.py": TRAINER.replace("{more}", more),
            "trl/trainer/grpo_config.py": CONFIG,
        },
    )


def verl(root: Path) -> Path:
    """A checkout that looks like verl's."""
    return put(
        root,
        {
            "verl/version/version": "0.8.0",
            "verl/workers/rollout/vllm_rollout/vllm_async_server.py": "{'max_num_seqs': config.max_num_seqs}\n"
            "SamplingParams(temperature=config.temperature, top_p=config.top_p)\n",
            "verl/workers/actor/dp_actor.py": "with torch.autocast(device, dtype=torch.bfloat16): ...\n",
            "verl/trainer/main_ppo.py": MAIN,
            "verl/trainer/config/ppo_trainer.yaml": PPO,
            "verl/trainer/config/backend/fsdp.yaml": "{}\n",
            "verl/trainer/config/actor/fsdp_actor.yaml": "strategy: fsdp\n",
            "verl/trainer/config/actor/megatron_actor.yaml": "strategy: megatron\nmegatron: {dtype: float32}\n",
            "verl/trainer/config/rollout/rollout.yaml": "name: vllm\nmode: async\ntemperature: 0.9\nseed: 7\n"
            "enable_prefix_caching: true\nmax_num_seqs: 77\n",
        },
    )


def colocated(given: Path | None, folder: Path) -> RolloutConfig:
    """A colocated TRL config, read with a source that was named."""
    path = folder / "grpo.yaml"
    path.write_text(COLOCATED)
    (config,) = TRL.read(Source(str(path), COLOCATED, (str(given),) if given is not None else ()), NOW)
    return config


def test_a_keyword_of_the_engine_is_what_its_line_says(tmp_path: Path) -> None:
    home = trl(tmp_path / "a", 'logprobs_mode="processed_logprobs",')
    config = colocated(home, tmp_path)
    assert config.engine["logprobs_mode"].value == "processed_logprobs"
    assert config.decided["logprobs_mode"] == f"{home}/trl/trainer/grpo_trainer.py:11"
    own = colocated(trl(tmp_path / "b", "logprobs_mode=args.mode,"), tmp_path)
    assert isinstance(own.engine["logprobs_mode"].value, Unknown)


def test_defaults_of_options_hold_if_the_copy_has_them(tmp_path: Path) -> None:
    home = trl(tmp_path / "a")
    config = colocated(home, tmp_path)
    assert config.engine["tensor_parallel_size"].value == 1
    assert config.decided["tensor_parallel_size"].endswith("grpo_config.py:7")
    assert not config.engine["gpu_memory_utilization"].known
    assert "grpo_config.py" in config.decided["gpu_memory_utilization"]
    assert isinstance(config.facts.importance_sampling_correction, Unknown)  # on in the release, off by this class
    assert isinstance(config.facts.uses_rollout_logprobs, Unknown)
    assert config.facts.divides_by_temperature is True
    other = trl(tmp_path / "b")
    (other / "trl/trainer/grpo_trainer.py").write_text(TRAINER.replace("{more}", "").replace("logits /", "logits *"))
    assert isinstance(colocated(other, tmp_path).facts.divides_by_temperature, Unknown)


def test_a_config_inside_a_checkout_needs_no_option(tmp_path: Path) -> None:
    home = trl(tmp_path, 'logprobs_mode="processed_logprobs",')
    put(home, {".git/HEAD": "", "examples/README": ""})
    assert "grpo_trainer.py" in colocated(None, home / "examples").decided["logprobs_mode"]


COMMAND = "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.enable_chunked_prefill=False {more}\n"


def commanded(home: Path, more: str = "") -> RolloutConfig:
    """A script in a checkout of verl."""
    path = put(home, {".git/HEAD": "", "examples/run.sh": COMMAND.replace("{more}", more)}) / "examples/run.sh"
    (config,) = VERL.read(Source(str(path), path.read_text()), NOW)
    return config


def test_a_command_is_read_on_top_of_the_config_that_its_program_starts_from(tmp_path: Path) -> None:
    config = commanded(verl(tmp_path))
    assert config.engine["max_num_seqs"].value == 77
    assert config.engine["max_num_seqs"].origin is Origin.FRAMEWORK
    assert config.decided["max_num_seqs"].endswith("rollout.yaml:6")
    assert config.sampling["temperature"].value == 0.9
    assert not any("starts from" in one for one in config.not_seen)


def test_a_dictionary_of_a_program_is_read_on_top_of_the_copys_own_config(tmp_path: Path) -> None:
    verl(tmp_path)
    text = "config = {'actor_rollout_ref': {'rollout': {'name': 'vllm', 'top_p': 0.9}}}\n"
    (config,) = VERL.read(Source(str(tmp_path / "train.py"), text), NOW)
    assert config.sampling["top_p"].value == 0.9 and config.sampling["temperature"].value == 0.9


def test_a_choice_on_the_command_line_takes_another_file_of_the_group(tmp_path: Path) -> None:
    home = verl(tmp_path)
    assert commanded(home, "backend=megatron").facts.dtype == "float32"
    assert commanded(home, "actor@actor_rollout_ref.actor=megatron_actor").facts.dtype == "float32"
    assert commanded(home).facts.dtype == "bfloat16"


def test_an_environment_is_found_without_running_its_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "venv/bin/python"
    packages = tmp_path / "venv/lib/python3.11/site-packages"
    trl(packages, 'logprobs_mode="processed_logprobs",')
    put(tmp_path, {"venv/bin/python": "#!/bin/false\n"})
    assert "grpo_trainer.py" in colocated(Path(folders_of(str(python))[0]), tmp_path).decided["logprobs_mode"]


def test_an_editable_install_is_read_where_it_lies(tmp_path: Path) -> None:
    packages = put(
        tmp_path / "venv/lib/python3.11/site-packages",
        {"trl-1.0.dist-info/direct_url.json": '{"url": "file:///src/trl", "dir_info": {"editable": true}}'},
    )
    assert folders_of(str(tmp_path / "venv")) == ("/src/trl", str(packages))


def test_an_interpreter_without_packages_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        folders_of(str(tmp_path / "python"))


ENGINES = """
def create_vllm_engines(args):
    return LLMRayActor.remote(
        model=args.model, tensor_parallel_size=args.vllm_tensor_parallel_size, enforce_eager=args.vllm_enforce_eager,
        enable_prefix_caching=args.vllm_enable_prefix_caching, gpu_memory_utilization=0.5,{more}
    )
"""


@pytest.mark.parametrize("more", ["", " attention_backend=args.vllm_attention_backend,"])
def test_no_option_is_written_that_the_checkout_does_not_have(tmp_path: Path, more: str) -> None:
    home = put(tmp_path / "checkout", {"open_instruct/vllm_utils.py": ENGINES.replace("{more}", more)})
    text = "python open_instruct/grpo_fast.py --vllm_num_engines 2\n"
    (config,) = OPEN_INSTRUCT.read(Source(str(tmp_path / "run.sh"), text, (str(home),)), NOW)
    assert bool(config.write("attention_backend", "FLASH_ATTN")) is bool(more)
