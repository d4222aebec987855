"""A copy of verl that lies beside a config is what it is: no newer release is read into it, and no fix rests on one."""

from pathlib import Path

import pytest
from packaging.version import Version

from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, RolloutConfig

DIALECT = declared()["verl"]

NOW = Version("0.18.1")
HOME = "verl/workers/rollout/vllm_rollout"
ENGINE = """
class Rollout:
    def __init__(self, config):
        load_format = "dummy" if config.load_format.startswith("dummy") else config.load_format
        {first}
        self.engine = LLM(
            model=config.path,
            dtype=config.dtype,
            tensor_parallel_size=config.tensor_model_parallel_size,
            enforce_eager=config.enforce_eager,
            gpu_memory_utilization=config.gpu_memory_utilization,
            load_format=load_format,
            {more}
        )
"""
# Every key that the section of the oldest release has, and none that came later.
ROLLOUT = """
  rollout:
    name: vllm
    temperature: 1.0
    prompt_length: 512
    response_length: 512
    dtype: bfloat16
    gpu_memory_utilization: 0.5
    ignore_eos: false
    enforce_eager: true
    free_cache_engine: true
    load_format: dummy_dtensor
    tensor_model_parallel_size: 2
    max_num_batched_tokens: 8192
    max_num_seqs: 1024
    do_sample: true
"""
RUN = "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.temperature=0.9 {more}\n"


def copy(root: Path, file: str = "vllm_rollout.py", more: str = "", first: str = "") -> Path:
    """A checkout with an engine in the trainer's process alone."""
    for name, text in {
        f"{HOME}/{file}": ENGINE.replace("{more}", more).replace("{first}", first),
        "verl/trainer/main_ppo.py": "import hydra\n@hydra.main(config_path='config', config_name='ppo_trainer')\n"
        "def main(config):\n    run(config)\n",
        "verl/trainer/config/ppo_trainer.yaml": f"actor_rollout_ref:\n  model: {{path: a/b}}{ROLLOUT}",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def run(root: Path, more: str = "") -> RolloutConfig:
    """A command of the checkout."""
    path = root / "run.sh"
    path.write_text(RUN.replace("{more}", more))
    (config,) = DIALECT.read(Source(str(path), path.read_text()), NOW)
    return config


@pytest.mark.parametrize("file", ["vllm_rollout.py", "vllm_rollout_spmd.py"])
def test_a_copy_without_a_server_builds_its_engine_in_the_trainer_whatever_the_vllm_release(
    tmp_path: Path, file: str
) -> None:
    config = run(copy(tmp_path, file, 'distributed_executor_backend="external_launcher",'))
    assert config.offline
    assert config.engine["distributed_executor_backend"].value == "external_launcher"
    assert config.decided["distributed_executor_backend"].endswith(f"{file}:13")
    assert not {"override_generation_config", "compilation_config", "seed"} & set(config.engine)
    # Up to v0.5 verl sets both, and this copy has no such line.
    assert not config.engine["enable_prefix_caching"].known and not config.engine["enable_sleep_mode"].known


def test_a_copy_has_what_it_passes_itself_and_the_releases_that_its_vllm_takes(tmp_path: Path) -> None:
    config = run(copy(tmp_path, more="disable_mm_preprocessor_cache=True,"))
    assert config.engine["disable_mm_preprocessor_cache"].value is True
    assert config.copy is not None and config.copy.where.endswith("/verl") and config.copy.release is None
    assert config.releases is not None and config.releases.oldest == Version("0.9.0")
    assert not run(copy(tmp_path / "without")).engine["disable_mm_preprocessor_cache"].known


def test_nothing_is_written_to_a_copy_that_does_not_hand_it_on(tmp_path: Path) -> None:
    config = run(copy(tmp_path, more="seed=0,"))
    assert config.write("async_scheduling", False) is None  # no engine_kwargs
    assert config.write("seed", 1) is None  # a literal: given twice it is a TypeError
    assert config.write("max_num_seqs", 8) is None  # a field of rollout that reaches no engine
    (edit,) = config.write("enforce_eager", False) or ()
    assert "rollout.enforce_eager=false" in edit.replacement.lower()


def test_a_copy_that_reads_engine_kwargs_is_given_keywords_not_flags(tmp_path: Path) -> None:
    root = copy(tmp_path, first='more = config["engine_kwargs"].get("vllm", {})', more="**more,")
    config = run(root, "actor_rollout_ref.rollout.mode=sync")
    (edit,) = config.write("async_scheduling", False) or ()
    assert "engine_kwargs.vllm.async_scheduling=false" in edit.replacement.lower()


def test_a_key_of_engine_kwargs_is_handed_on_with_the_others(tmp_path: Path) -> None:
    more = "actor_rollout_ref.rollout.mode=sync +actor_rollout_ref.rollout.engine_kwargs.vllm.disable_cascade_attn=True"
    spread = copy(tmp_path / "a", first='more = config["engine_kwargs"].get("vllm", {})', more="**more,")
    config = run(spread, more)
    assert config.engine["disable_cascade_attn"].value is True
    (edit,) = config.write("disable_cascade_attn", False) or ()
    assert edit.replacement == "false"
    assert not run(copy(tmp_path / "b"), more).engine["disable_cascade_attn"].known


def test_the_seed_of_a_copy_that_reads_one_is_its_own(tmp_path: Path) -> None:
    copied = copy(tmp_path, more='seed=config.get("seed", 0),')
    assert run(copied).engine["seed"].value == 0
    assert run(copied, "+actor_rollout_ref.rollout.seed=7").engine["seed"].value == 7


def test_a_false_that_is_a_keyword_arrives(tmp_path: Path) -> None:
    more = "actor_rollout_ref.rollout.enforce_eager=False"
    config = run(copy(tmp_path), more)
    assert config.engine["enforce_eager"].value is False
    assert not [lost for lost in config.lost if lost.loss is Loss.FALSE_DROPPED]


def test_what_is_written_and_not_seen_to_be_handed_on_is_open(tmp_path: Path) -> None:
    more = "actor_rollout_ref.rollout.max_num_seqs=8 +actor_rollout_ref.rollout.enable_prefix_caching=False"
    config = run(copy(tmp_path, more="enable_prefix_caching=True,"), f"{more} actor_rollout_ref.rollout.mode=sync")
    assert not config.engine["max_num_seqs"].known and not config.engine["enable_prefix_caching"].known
    assert "vllm_rollout.py is not seen to hand" in config.engine["max_num_seqs"].note


def test_a_seed_that_the_source_computes_is_not_told(tmp_path: Path) -> None:
    root = copy(tmp_path, more='seed=int(os.getenv("RANK", "0")) // 2,')
    config = run(root, "actor_rollout_ref.rollout.mode=sync")
    assert not config.engine["seed"].known


@pytest.mark.parametrize(
    ("passed", "written", "runs"),
    [
        ("config.prompt_length + config.response_length", "null", 512 + 1024),
        ("config.prompt_length + config.response_length", "32768", None),
        ("int(config.max_model_len or config.prompt_length + config.response_length)", "32768", 32768),
    ],
)
def test_a_context_length_is_known_if_the_copy_hands_it_on(
    tmp_path: Path, passed: str, written: str, runs: int | None
) -> None:
    more = f"actor_rollout_ref.rollout.response_length=1024 actor_rollout_ref.rollout.max_model_len={written}"
    length = run(copy(tmp_path, more=f"max_model_len={passed},"), more).engine["max_model_len"]
    assert length.known is (runs is not None)
    assert runs is None or length.value == runs


@pytest.mark.parametrize(("line", "known"), [("startswith", True), ("endswith", False)])
def test_a_copy_takes_every_dummy_for_one_if_it_says_so(tmp_path: Path, line: str, known: bool) -> None:
    file = copy(tmp_path) / HOME / "vllm_rollout.py"
    file.write_text(file.read_text().replace("startswith", line))
    load_format = run(tmp_path).engine["load_format"]
    assert load_format.value == "dummy" if known else not load_format.known


def test_a_complete_section_without_newer_keys_tells_an_old_release_where_no_source_is_there(tmp_path: Path) -> None:
    path = tmp_path / "ppo.yaml"
    path.write_text(f"actor_rollout_ref:{ROLLOUT}    enable_chunked_prefill: false\n")
    (config,) = DIALECT.read(Source(str(path), path.read_text()), NOW)
    assert config.offline and not config.lost
    assert config.engine["enable_chunked_prefill"].value is False
    assert config.write("async_scheduling", False) is None


@pytest.mark.parametrize(("rank", "largest"), [(32, 32), (20, None)])
def test_an_adapter_brings_its_limits(tmp_path: Path, rank: int, largest: int | None) -> None:
    path = tmp_path / "run.sh"
    path.write_text(RUN.replace("{more}", f"actor_rollout_ref.model.lora_rank={rank}"))
    (config,) = DIALECT.read(Source(str(path), path.read_text()), Version("0.10.0"))
    assert config.engine["max_loras"].value == 1
    said = config.engine["max_lora_rank"]
    assert said.value == largest if largest is not None else not said.known


@pytest.mark.parametrize(("name", "told"), [("verl", Version("0.2.0")), ("somebodys-recipe", None)])
def test_a_project_that_holds_a_copy_does_not_lend_it_its_release(
    tmp_path: Path, name: str, told: Version | None
) -> None:
    root = copy(tmp_path)
    (root / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "0.2.0"\n')
    assert Checkout(str(root), "verl", (str(root),)).version == told


def test_a_server_that_builds_no_flags_gives_its_engine_what_its_call_says(tmp_path: Path) -> None:
    copy(tmp_path)
    server = ENGINE.replace("LLM(", "AsyncEngineArgs(").replace("load_format=load_format", "load_format='auto'")
    (tmp_path / HOME / "vllm_async_server.py").write_text(server.replace("{more}", "").replace("{first}", ""))
    text = RUN.replace("{more}", "actor_rollout_ref.rollout.mode=async actor_rollout_ref.rollout.max_num_seqs=64")
    (config,) = DIALECT.read(Source(str(tmp_path / "run.sh"), text), Version("0.8.5"))
    assert not config.engine["load_format"].known and not config.engine["max_num_seqs"].known
    assert config.engine["gpu_memory_utilization"].value == 0.5
