from pathlib import Path

import pytest
from packaging.version import Version
from reading import lost_names, read_all, read_one, rewritten, source_of

from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, RolloutConfig
from rlaudit.unknown import Unknown

DIALECT = declared()["areal"]

YAML = """\
seed: 3
rollout:
  backend: "vllm:d4p1t2"
  scheduling_spec: ${actor.scheduling_spec}
gconfig:
  temperature: 0.8
  max_new_tokens: 64
actor:
  path: org/policy
  dtype: bfloat16
  temperature: ${gconfig.temperature}
  recompute_logprob: true
  rejection_sampling:
    metric: ratio
    upper: 5.0
  scheduling_spec:
    - env_vars:
        VLLM_USE_V1: "1"
vllm:
  model: ${actor.path}
  seed: ${seed}
  dtype: ${actor.dtype}
  enforce_eager: false
"""


def test_the_section_and_the_backend_string_become_engine_arguments() -> None:
    config = read_one(DIALECT, YAML, "0.19.1")
    assert (config.engine["seed"].value, config.engine["tensor_parallel_size"].value) == (3, 2)
    assert config.facts.replicas == 4
    assert config.engine["enforce_eager"].value is False and config.lost == ()
    assert config.environment["VLLM_USE_V1"].value == "1"
    assert config.model is not None and config.model.value == "org/policy"


def test_prefix_caching_is_off_by_the_dataclass_unless_its_negation_is_false() -> None:
    assert read_one(DIALECT, YAML, "0.19.1").engine["enable_prefix_caching"].value is False
    on = YAML + "  no_enable_prefix_caching: false\n"
    assert read_one(DIALECT, on, "0.19.1").engine["enable_prefix_caching"].value is None


def test_a_written_false_is_dropped() -> None:
    config = read_one(DIALECT, YAML + "  enable_prefix_caching: false\n", "0.19.1")
    assert config.engine["enable_prefix_caching"].value is None
    (lost,) = config.lost
    assert (lost.name, lost.loss) == ("enable_prefix_caching", Loss.FALSE_DROPPED)


def test_there_is_no_way_to_say_logprobs_mode() -> None:
    config = read_one(DIALECT, YAML + "  logprobs_mode: processed_logprobs\n", "0.19.1")
    assert "logprobs_mode" not in config.engine
    assert lost_names(config) == {"logprobs_mode"}
    assert config.write("logprobs_mode", "processed_logprobs") is None


def test_the_trainers_temperature_must_be_the_rollouts() -> None:
    assert read_one(DIALECT, YAML, "0.19.1").facts.divides_by_temperature is True
    text = YAML.replace("  temperature: ${gconfig.temperature}\n", "")
    assert isinstance(read_one(DIALECT, text, "0.19.1").trainer["divides_by_temperature"].value, Unknown)


def test_updates_abort_and_clear() -> None:
    config = read_one(DIALECT, YAML, "0.19.1")
    assert (config.facts.pause_mode, config.facts.resets_prefix_cache) == ("abort", True)
    assert config.facts.importance_sampling_correction is True


@pytest.mark.parametrize("backend", ["sglang:d4", "sglang:d4p1t1"])
def test_another_backend_gives_no_config(backend: str) -> None:
    assert read_all(DIALECT, YAML.replace("vllm:d4p1t2", backend), "0.19.1") == ()


def test_the_older_allocation_mode_is_read() -> None:
    text = YAML.replace('  backend: "vllm:d4p1t2"\n', "  queue_size: null\n")
    config = read_one(DIALECT, 'allocation_mode: "vllm:d2t4+fsdp:d8"\n' + text, "0.19.1")
    assert (config.facts.replicas, config.engine["tensor_parallel_size"].value) == (2, 4)


def test_false_is_written_as_the_negated_field() -> None:
    config = read_one(DIALECT, YAML, "0.19.1")
    assert rewritten(config, YAML, "enable_prefix_caching", False) == YAML + "  no_enable_prefix_caching: true\n"
    assert config.write("enforce_eager", False) is None


def test_what_is_no_areal_config_is_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("vllm:\n  model: a\nactor: {}\n"))


OLD_CLASS = """
@dataclass
class vLLMConfig:
    model: str = ""
    seed: int = 1
    swap_space: int = 4
    enforce_eager: bool = True
    enable_chunked_prefill: bool = False
    enable_prefix_caching: bool = False
    uvicorn_log_level: str = "warning"
"""
OLD_SERVER = """
from vllm.entrypoints.openai.api_server import router, run_server
from vllm.utils import FlexibleArgumentParser

run_server(FlexibleArgumentParser().parse_args())
"""


def of_checkout(root: Path, fields: str, vllm: str) -> RolloutConfig:
    """The config beside AReaL's own class and server."""
    for name, text in {
        "areal/api/cli_args.py": fields,
        "areal/engine/vllm_ext/areal_vllm_server.py": OLD_SERVER,
        "run.yaml": YAML,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (config,) = DIALECT.read(Source(str(root / "run.yaml"), YAML), Version(vllm))
    return config


def test_the_class_of_the_checkout_says_what_is_passed(tmp_path: Path) -> None:
    another = "\n@dataclass\nclass SGLangConfig:\n    swap_space: int = 9\n"
    config = of_checkout(tmp_path, OLD_CLASS + another, "0.8.5")
    assert not config.engine["block_size"].known and config.engine["swap_space"].value == 4
    assert "enable_prefix_caching" not in config.engine  # a false flag is not passed, and V1 caches
    assert config.write("enable_prefix_caching", False) is None  # this class would refuse no_enable_prefix_caching
    assert "uvicorn_log_level" not in config.engine
    negated = OLD_CLASS.replace("enable_prefix_caching: bool = False", "no_enable_prefix_caching: bool = True")
    newer = of_checkout(tmp_path / "b", negated, "0.19.1")
    assert newer.engine["enable_prefix_caching"].value is False and newer.write("enable_prefix_caching", False)
    other = of_checkout(tmp_path / "c", negated.replace("bool = True", "bool = ask()"), "0.19.1")
    assert isinstance(other.engine["enable_prefix_caching"].value, Unknown)


def test_a_greedy_flag_that_is_not_known_leaves_the_temperature_open() -> None:
    for greedy, temperature in (("true", 0.0), ("false", 0.8), ("${oc.env:GREEDY}", Unknown)):
        text = YAML.replace("  max_new_tokens", f"  greedy: {greedy}\n  max_new_tokens")
        value = read_one(DIALECT, text, "0.19.1").sampling["temperature"].value
        assert isinstance(value, Unknown) if temperature is Unknown else value == temperature


def test_without_any_key_of_it_there_is_no_correction() -> None:
    text = YAML.replace("  rejection_sampling:\n    metric: ratio\n    upper: 5.0\n", "")
    assert read_one(DIALECT, text, "0.19.1").facts.importance_sampling_correction is False
