"""EasyR1: `worker.rollout` in YAML, and commands on top of a file."""

from pathlib import Path

from packaging.version import Version
from reading import put, read_file, read_one, rewritten, source_of

from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, Origin, RolloutConfig
from rlaudit.unknown import Unknown

DIALECT = declared()["easyr1"]
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
    assert not declared()["verl"].recognise(source_of(TEXT)) and config.offline
    assert config.model is not None and config.model.value == "org/model"
    assert (config.engine["dtype"].value, config.engine["max_model_len"].value) == ("float16", 4096)
    assert config.engine["enforce_eager"].origin is Origin.FRAMEWORK and "enable_prefix_caching" not in config.engine
    assert (config.sampling["temperature"].value, config.sampling["top_p"].value) == (0.8, 1.0)
    assert config.facts.replicas == 4 and config.facts.seeds_replicas is True
    assert config.facts.uses_rollout_logprobs is False
    assert [(lost.name, lost.loss) for lost in config.lost] == [("enforce_eagre", Loss.REFUSED)]


def test_only_fields_of_its_own_are_written() -> None:
    config = read_one(DIALECT, TEXT, "0.8.5")
    assert "enable_chunked_prefill: false" in rewritten(config, TEXT, "enable_chunked_prefill", False)
    assert config.write("logprobs_mode", "processed_logprobs") is None


def test_a_command_overrides_the_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "examples/config.yaml").write_text(TEXT)
    script = tmp_path / "examples/run.sh"
    script.write_text("python3 -m verl.trainer.main config=examples/config.yaml worker.rollout.temperature=0.5\n")
    (config,) = DIALECT.read(Source(str(script), script.read_text()), Version("0.8.5"))
    assert config.sampling["temperature"].value == 0.5 and config.engine["tensor_parallel_size"].value == 2
    assert config.parts and not any("not beside" in one for one in config.not_seen)


OLDER = """
class vLLMRollout:
    def __init__(self, config):
        self.engine = LLM(
            model=config.path,
            tensor_parallel_size=config.tensor_parallel_size,
            enforce_eager=config.enforce_eager,
            gpu_memory_utilization=config.gpu_memory_utilization,
            enable_sleep_mode=True,
            {more}
        )
"""
OLDER_CONFIG = """
@dataclass
class RolloutConfig:
    temperature: float = 1.0
    dtype: str = "bf16"
    enforce_eager: bool = False
    gpu_memory_utilization: float = 0.5
    free_cache_engine: bool = False
    tensor_parallel_size: int = 2
    limit_images: int = 0
    val_override_config: dict[str, Any] = field(default_factory=dict)
"""


def older(root: Path, more: str = "") -> RolloutConfig:
    """A config beside a copy that has verl's own layout."""
    written = "    free_cache_engine: true\n    limit_images: 3\n    val_override_config: {n: 1}\n"
    files = {
        "verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py": OLDER.replace("{more}", more),
        "verl/workers/rollout/config.py": OLDER_CONFIG,
        "run.yaml": TEXT.replace("    enforce_eagre: true\n", written),
    }
    put(root, files)
    return read_file(DIALECT, root / "run.yaml", "0.8.5")


def test_an_older_copy_of_easyr1_is_read_where_verl_has_its_engine(tmp_path: Path) -> None:
    config = older(tmp_path)
    assert not config.engine["seed"].known and not config.engine["load_format"].known
    assert config.engine["enable_sleep_mode"].value is True
    assert not config.lost and config.options["worker.rollout.free_cache_engine"].value is True
    assert config.options["worker.rollout.limit_images"].value == 3
    assert config.write("seed", 1) is None


def test_a_seed_that_an_older_copy_computes_is_open(tmp_path: Path) -> None:
    seed = older(tmp_path, "seed=self.rank // config.tensor_parallel_size,").engine["seed"]
    assert not seed.known and "config.py" in seed.note


def test_a_penalty_that_a_copys_config_has_as_a_field_is_passed_on(tmp_path: Path) -> None:
    fields = "class RolloutConfig:\n    temperature: float = 1.0\n    repetition_penalty: float = 1.1\n"
    put(tmp_path, {"verl/workers/rollout/config.py": fields, "verl/workers/rollout/vllm_rollout_spmd.py": "",
                   "run.yaml": TEXT})  # fmt: skip
    path = tmp_path / "run.yaml"
    assert isinstance(read_file(DIALECT, path, "0.8.5").sampling["repetition_penalty"].value, Unknown)
    path.write_text(TEXT.replace("temperature: 0.8", "repetition_penalty: 1.2"))
    assert read_file(DIALECT, path, "0.8.5").sampling["repetition_penalty"].value == 1.2
    assert read_one(DIALECT, TEXT, "0.8.5").sampling["repetition_penalty"].value == 1.0
