from pathlib import Path

from packaging.version import Version
from reading import read_one, rewritten, source_of

from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, RolloutConfig
from rlaudit.unknown import Unknown

DIALECT = declared()["axolotl"]

YAML = """\
base_model: org/policy
rl: grpo
bf16: true
trl:
  use_vllm: true
  temperature: 0.7
  max_completion_length: 64
  generation_kwargs:
    top_p: 0.9
vllm:
  host: 0.0.0.0
  gpu_memory_utilization: 0.5
  enable_prefix_caching: false
  enforce_eager: false
  speculative: 3
"""


def test_a_written_false_arrives_if_the_command_line_says_nothing() -> None:
    config = read_one(DIALECT, YAML, "0.18.1")
    assert config.engine["enable_prefix_caching"].value is False
    assert {one.name: one.loss for one in config.lost} == {"speculative": Loss.UNKNOWN_KEY}


def test_enforce_eager_is_a_key_since_0_16(tmp_path: Path) -> None:
    assert not read_one(DIALECT, YAML, "0.18.1").engine["enforce_eager"].known
    assert of_project(tmp_path / "a", "axolotl==0.17.0\n", "0.18.1").engine["enforce_eager"].value is False
    assert "enforce_eager" in {one.name for one in of_project(tmp_path / "b", "axolotl==0.15.0\n", "0.18.1").lost}


def test_logprobs_mode_depends_on_trls_release_and_on_axolotls(tmp_path: Path) -> None:
    # A vLLM that no earlier TRL imports.
    assert read_one(DIALECT, YAML, "0.18.1").engine["logprobs_mode"].value == "processed_logprobs"
    value = read_one(DIALECT, YAML, "0.11.0").engine["logprobs_mode"].value
    assert isinstance(value, Unknown) and "axolotl" in value.reason
    assert "logprobs_mode" not in of_project(tmp_path / "a", "axolotl==0.12.0\n", "0.11.0").engine
    other = read_one(DIALECT, YAML[: YAML.index("vllm:\n  host")], "0.18.1").engine["logprobs_mode"]
    assert not other.known


def test_sampling_is_trls() -> None:
    sampling = read_one(DIALECT, YAML, "0.18.1").sampling
    assert (sampling["temperature"].value, sampling["top_p"].value, sampling["max_tokens"].value) == (0.7, 0.9, 64)


def of_project(folder: Path, pins: str, vllm: str) -> RolloutConfig:
    """The config in a project with pins."""
    (folder / ".git").mkdir(parents=True)
    (folder / "requirements.txt").write_text(pins)
    (config,) = DIALECT.read(Source(str(folder / "run.yaml"), YAML), Version(vllm))
    return config


def test_what_the_file_leaves_to_trl_is_of_the_release_that_axolotl_pins(tmp_path: Path) -> None:
    today = of_project(tmp_path / "a", "axolotl[vllm]==0.8.1\n", "0.8.5")
    assert today.sampling["top_k"].value == 50 and today.refused_pin is None
    pin = of_project(tmp_path / "b", "axolotl[vllm]==0.8.1\n", "0.18.1").refused_pin
    assert pin is not None and "pins TRL 0.16.1" in pin.because and pin.where.endswith("requirements.txt:1")
    assert of_project(tmp_path / "c", "axolotl==0.18.0\n", "0.18.1").sampling["top_k"].value == 0
    unpinned = of_project(tmp_path / "d", "", "0.8.5").sampling["top_k"].value
    assert isinstance(unpinned, Unknown) and "50" in unpinned.reason


def test_the_correction_is_known_only_where_it_is_written() -> None:
    assert "importance_sampling_correction" not in read_one(DIALECT, YAML, "0.18.1").trainer
    off = YAML.replace("use_vllm: true", "use_vllm: true\n  vllm_importance_sampling_correction: false")
    config = read_one(DIALECT, off, "0.18.1")
    assert config.facts.importance_sampling_correction is False
    assert config.facts.logs_mismatch is False


def test_a_server_started_elsewhere_is_named() -> None:
    config = read_one(DIALECT, YAML[: YAML.index("vllm:\n  host")], "0.18.1")
    assert any("another command" in sentence for sentence in config.not_seen)


def test_training_without_vllm_gives_no_config() -> None:
    assert not DIALECT.recognise(source_of(YAML.replace("use_vllm: true", "use_vllm: false")))


def test_only_keys_of_the_section_are_written(tmp_path: Path) -> None:
    config = read_one(DIALECT, YAML, "0.18.1")
    assert "enable_prefix_caching: true" in rewritten(config, YAML, "enable_prefix_caching", True)
    assert "tensor_parallel_size: 2" in rewritten(config, YAML, "tensor_parallel_size", 2)
    # Whether the section has the key depends on axolotl's release.
    assert config.write("enforce_eager", True) is None
    pinned = of_project(tmp_path / "a", "axolotl==0.17.0\n", "0.18.1")
    assert "enforce_eager: true" in rewritten(pinned, YAML, "enforce_eager", True)
    assert config.write("logprobs_mode", "processed_logprobs") is None


def test_what_is_no_axolotl_config_is_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("base_model: a\nvllm: 3\n"))
