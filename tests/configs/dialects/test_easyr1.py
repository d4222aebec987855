"""EasyR1: `worker.rollout` in YAML, and commands on top of a file."""

from pathlib import Path

from packaging.version import Version
from reading import read_one, rewritten, source_of

from rlaudit.configs.dialects.easyr1 import DIALECT
from rlaudit.configs.dialects.verl.read import DIALECT as VERL
from rlaudit.configs.rollout_config import Loss, Origin
from rlaudit.configs.source import Source

TEXT = """\
data:
  max_prompt_length: 1024
  max_response_length: 3072
worker:
  actor:
    model:
      model_path: org/model
  rollout:
    temperature: 0.8
    tensor_parallel_size: 2
    dtype: fp16
    enforce_eagre: true
trainer:
  nnodes: 1
  n_gpus_per_node: 8
"""


def test_fields_literals_and_the_trainer_are_read() -> None:
    config = read_one(DIALECT, TEXT, "0.8.5")
    assert not VERL.recognise(source_of(TEXT)) and config.offline
    assert config.model is not None and config.model.value == "org/model"
    assert (config.engine["dtype"].value, config.engine["max_model_len"].value) == ("float16", 4096)
    assert config.engine["enforce_eager"].origin is Origin.FRAMEWORK and "enable_prefix_caching" not in config.engine
    assert (config.sampling["temperature"].value, config.sampling["top_p"].value) == (0.8, 1.0)
    assert config.says("replicas") == 4 and config.says("seeds_replicas") is True
    assert config.says("uses_rollout_logprobs") is False
    assert [(lost.name, lost.loss) for lost in config.lost] == [("enforce_eagre", Loss.REFUSED)]


def test_only_fields_of_its_own_are_written() -> None:
    config = read_one(DIALECT, TEXT, "0.8.5")
    assert "enable_chunked_prefill: false" in rewritten(config, TEXT, "enable_chunked_prefill", False)
    assert config.write("logprobs_mode", "processed_logprobs") is None


def test_a_command_overrides_the_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/config.yaml").write_text(TEXT)
    script = tmp_path / "examples/run.sh"
    script.write_text("python3 -m verl.trainer.main config=examples/config.yaml worker.rollout.temperature=0.5\n")
    (config,) = DIALECT.read(Source(str(script), script.read_text()), Version("0.8.5"))
    assert config.sampling["temperature"].value == 0.5 and config.engine["tensor_parallel_size"].value == 2
    assert config.parts and not any("not beside" in one for one in config.not_seen)
