from pathlib import Path

import pytest
from reading import put, read_file, read_one, rewritten, source_of

from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, Origin, RolloutConfig
from rlaudit.unknown import Unknown

DIALECT = declared()["prime_rl"]

RUN = """\
seq_len = 512

[model]
name = "org/policy"

[trainer.optim]
lr = 1e-6

[orchestrator]
batch_size = 8

[orchestrator.train.sampling]
temperature = 0.9
max_completion_tokens = 64

[orchestrator.train.sampling.extra_body]
top_k = 40

[orchestrator.eval.sampling]
temperature = 0.1

[inference]
enable_fp32_lm_head = true

[inference.vllm]
max-num-seqs = 64
enable_prefix_caching = false  # off
tool_call_parser = "hermes"
"""
FLAT = """\
[inference]
enable_prefix_caching = true
[inference.model]
name = "org/policy"
enforce_eager = true
[inference.parallel]
tp = 2
[inference.vllm_extra]
max_num_sequences = 4
logprobs_mode = "raw_logprobs"
[orchestrator.sampling]
temperature = 1.0
"""


def test_the_pass_through_table_arrives_in_vllms_spelling_and_false_is_kept() -> None:
    config = read_one(DIALECT, RUN, "0.26.0", "rl.toml")
    assert config.engine["max_num_seqs"].value == 64
    assert config.engine["enable_prefix_caching"].value is False
    assert config.model is not None and config.model.value == "org/policy"
    assert any("tool_call_parser" in sentence for sentence in config.not_seen)


def test_processed_logprobs_are_set_where_nothing_is_written() -> None:
    setting = read_one(DIALECT, RUN, "0.26.0", "rl.toml").engine["logprobs_mode"]
    assert (setting.value, setting.origin) == ("processed_logprobs", Origin.FRAMEWORK)
    raw = RUN + 'logprobs_mode = "raw_logprobs"\n'
    assert read_one(DIALECT, raw, "0.26.0", "rl.toml").engine["logprobs_mode"].value == "raw_logprobs"


def test_the_rollouts_sampling_is_read_and_the_evaluations_is_not() -> None:
    sampling = read_one(DIALECT, RUN, "0.26.0", "rl.toml").sampling
    assert (sampling["temperature"].value, sampling["top_k"].value, sampling["max_tokens"].value) == (0.9, 40, 64)


def test_trainer_facts_know_the_salted_cache_and_the_kept_pause() -> None:
    config = read_one(DIALECT, RUN, "0.26.0", "rl.toml")
    assert config.facts.salts_prefix_cache is True and config.facts.pause_clears_cache is False
    assert config.facts.rollout_head_dtype == "float32"
    assert config.facts.importance_sampling_mode == "dppo mask"


def test_an_unwritten_head_is_unknown_while_its_default_changed() -> None:
    config = read_one(DIALECT, RUN.replace("enable_fp32_lm_head = true", ""), "0.26.0", "rl.toml")
    assert config.trainer["rollout_head_dtype"].value == "float32"
    flat = read_one(DIALECT, FLAT, "0.26.0", "rl.toml")
    assert isinstance(flat.trainer["rollout_head_dtype"].value, Unknown)


def test_the_flat_layout_maps_its_own_names_and_loses_unknown_extras() -> None:
    config = read_one(DIALECT, FLAT, "0.18.1", "rl.toml")
    assert config.engine["tensor_parallel_size"].value == 2 and config.engine["enforce_eager"].value is True
    assert config.engine["logprobs_mode"].value == "raw_logprobs"
    assert [(lost.name, lost.loss) for lost in config.lost] == [("max_num_sequences", Loss.UNKNOWN_KEY)]
    assert isinstance(config.trainer["salts_prefix_cache"].value, Unknown)


def test_a_file_without_an_inference_section_leaves_the_engine_unknown() -> None:
    text = RUN.partition("[inference]")[0]
    config = read_one(DIALECT, text, "0.26.0", "rl.toml")
    assert isinstance(config.engine.get("dtype").value, Unknown)
    assert config.sampling["temperature"].value == 0.9


def test_an_inference_file_alone_leaves_sampling_unknown() -> None:
    text = '[server]\nport = 8001\n[vllm]\nmodel = "org/policy"\nmax_model_len = 64\n'
    config = read_one(DIALECT, text, "0.26.0", "infer.toml")
    assert config.engine["max_model_len"].value == 64
    assert isinstance(config.sampling.get("temperature").value, Unknown)


def test_an_environment_that_samples_differently_is_named() -> None:
    own = '[[orchestrator.train.source]]\nname = "a"\n[orchestrator.train.source.sampling]\ntemperature = 0.2\n'
    text = RUN.replace("[orchestrator.train.sampling.extra_body]", own + "[orchestrator.train.sampling.extra_body]")
    config = read_one(DIALECT, text, "0.26.0", "rl.toml")
    assert any("samples differently" in sentence for sentence in config.not_seen)


def test_overrides_on_the_command_line_win_over_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "rl.toml").write_text(RUN)
    script = tmp_path / "run.sh"
    script.write_text("uv run rl @ rl.toml --inference.vllm.max-num-seqs 32 --orchestrator.batch-size 4\n")
    config = read_file(DIALECT, script, "0.26.0")
    assert (config.engine["max_num_seqs"].value, config.engine["max_num_seqs"].origin) == (32, Origin.OVERRIDE)
    assert config.engine["enable_prefix_caching"].value is False
    assert config.parts == (str(tmp_path / "rl.toml"),)


def test_overrides_of_a_file_that_is_not_there_leave_the_rest_unknown() -> None:
    text = "uv run rl @ gone.toml --inference.vllm.enforce_eager true\n"
    config = read_one(DIALECT, text, "0.26.0", "run.sh")
    assert config.engine["enforce_eager"].value is True
    assert isinstance(config.engine.get("logprobs_mode").value, Unknown)


def test_a_setting_is_written_in_the_table_that_the_file_has() -> None:
    config = read_one(DIALECT, RUN, "0.26.0", "rl.toml")
    assert rewritten(config, RUN, "enable_prefix_caching", True) == RUN.replace("= false  # off", "= true  # off")
    assert rewritten(config, RUN, "async_scheduling", False).endswith('"hermes"\nasync_scheduling = false\n')
    flat = read_one(DIALECT, FLAT, "0.18.1", "rl.toml")
    assert "tp = 4" in rewritten(flat, FLAT, "tensor_parallel_size", 4)


@pytest.mark.parametrize("text", ["[tool.poetry]\nname = 'x'\n", "[inference]\nfoo = 1\n", "not toml [", ""])
def test_other_toml_files_are_not_recognised(text: str) -> None:
    assert not DIALECT.recognise(source_of(text, "pyproject.toml"))


def test_a_script_that_only_names_the_file_adds_nothing() -> None:
    assert not DIALECT.recognise(source_of("uv run rl @ inference.toml\n", "run.sh"))


def test_only_the_repetition_penalty_is_left_to_the_server() -> None:
    sampling = read_one(DIALECT, FLAT, "0.26.0", "rl.toml").sampling
    assert (sampling["top_k"].value, sampling["min_p"].value) == (-1, 0.0)
    assert "repetition_penalty" not in sampling
    assert read_one(DIALECT, RUN, "0.26.0", "rl.toml").sampling["top_k"].value == 40


@pytest.mark.parametrize(("written", "rank"), [("rank = 8", 8), ("alpha = 16", 16)])
def test_an_adapter_that_is_trained_turns_adapters_on_in_the_engine(written: str, rank: int) -> None:
    assert "enable_lora" not in read_one(DIALECT, RUN, "0.18.1", "rl.toml").engine
    engine = read_one(DIALECT, f"{RUN}\n[trainer.model.lora]\n{written}\n", "0.18.1", "rl.toml").engine
    assert (engine["enable_lora"].value, engine["max_lora_rank"].value) == (True, rank)


CONFIGS = "packages/prime-rl-configs/src/prime_rl/configs/inference.py"
SERVER = "src/prime_rl/inference/vllm/server.py"
REQUESTS = "src/prime_rl/orchestrator/envs.py"


def read_in(checkout: Path, text: str, **files: str) -> RolloutConfig:
    """Read a run's file in a copy of prime-rl that has some files."""
    paths = {"configs": CONFIGS, "server": SERVER, "requests": REQUESTS}
    put(checkout, {paths[name]: content for name, content in files.items()})
    (checkout / ".git").mkdir()
    run = checkout / "rl.toml"
    run.write_text(text)
    return read_file(DIALECT, run, "0.18.1")


@pytest.mark.parametrize(("default", "known"), [("0.9", True), ("0.77", False)])
def test_a_default_is_known_while_its_line_is_in_the_copy(default: str, known: bool, tmp_path: Path) -> None:
    configs = f"class VllmConfig(BaseConfig):\n    gpu_memory_utilization: float = {default}\n"
    setting = read_in(tmp_path, RUN, configs=configs).engine["gpu_memory_utilization"]
    assert setting.value == 0.9 if known else isinstance(setting.value, Unknown)


@pytest.mark.parametrize(
    ("server", "requests", "resets", "salts"),
    [
        ("await engine_client(request).reset_prefix_cache()\n", "", True, False),
        ("", 'sampling["extra_body"] = {**more, "cache_salt": cache_salt}\n', False, True),
        ("", "", None, None),
    ],
)
def test_what_keeps_old_prefixes_away_is_what_a_copy_of_a_flat_release_has(
    server: str, requests: str, resets: bool | None, salts: bool | None, tmp_path: Path
) -> None:
    config = read_in(tmp_path, FLAT, server=server, requests=requests)
    for fact, wanted in ((config.facts.resets_prefix_cache, resets), (config.facts.salts_prefix_cache, salts)):
        assert fact is wanted or (wanted is None and isinstance(fact, Unknown))
    assert isinstance(config.facts.pause_mode, Unknown)


INFER = '[server]\nport = 8001\n[vllm]\nmodel = "org/policy"\nmax_model_len = 64\n'
ORCH = "batch_size = 8\n[train.sampling]\ntemperature = 0.7\n[[train.source]]\nname = 'a'\n"
TRAIN = "[model]\ndtype = 'float32'\n[optim]\nlr = 1e-6\n"


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A run whose sections are a file each."""
    for name, text in (("infer", INFER), ("orch", ORCH), ("train", TRAIN)):
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ["infer", "orch"])
def test_the_files_of_one_run_are_read_together(split: Path, name: str) -> None:
    config = read_file(DIALECT, split / f"{name}.toml", "0.26.0")
    assert config.engine["max_model_len"].value == 64 and config.sampling["temperature"].value == 0.7
    assert config.facts.dtype == "float32"
    assert {Path(part).name for part in config.parts} == {"infer.toml", "orch.toml", "train.toml"} - {f"{name}.toml"}


@pytest.mark.parametrize("name", ["inference", "orchestrator"])
def test_so_are_files_with_the_whole_word_and_one_before_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "big-inference.toml").write_text(INFER)
    (tmp_path / "big-orchestrator.toml").write_text(ORCH)
    (tmp_path / "infer.toml").write_text(INFER.replace("64", "32"))
    config = read_file(DIALECT, tmp_path / f"big-{name}.toml", "0.26.0")
    assert config.engine["max_model_len"].value == 64 and config.sampling["temperature"].value == 0.7


@pytest.mark.parametrize(
    "script",
    [
        "uv run rl --inference @ infer.toml --orchestrator @ orch.toml --trainer @ train.toml\n",
        "uv run inference @ infer.toml &\nuv run orchestrator @ orch.toml &\nuv run trainer @ train.toml\n",
    ],
)
def test_the_files_that_a_script_names_are_read_together(split: Path, script: str) -> None:
    (split / "run.sh").write_text(script)
    config = read_file(DIALECT, split / "run.sh", "0.26.0")
    assert config.engine["max_model_len"].value == 64 and config.sampling["temperature"].value == 0.7
    assert config.facts.dtype == "float32" and config.write("enforce_eager", True) is None


def test_a_file_of_another_kind_beside_it_is_no_part_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "infer.toml").write_text(INFER)
    (tmp_path / "orch.toml").write_text("[tool.orch]\nname = 1\n")
    config = read_file(DIALECT, tmp_path / "infer.toml", "0.26.0")
    assert not config.parts and isinstance(config.sampling.get("temperature").value, Unknown)


def test_a_file_with_a_model_only_is_the_engines_if_it_lies_beside_an_orchestrators(split: Path) -> None:
    (split / "infer.toml").write_text('[model]\nname = "org/policy"\n')
    assert not DIALECT.recognise(source_of('[model]\nname = "org/policy"\n', "infer.toml"))
    config = read_file(DIALECT, split / "orch.toml", "0.26.0")
    assert config.model is not None and config.engine["logprobs_mode"].value == "processed_logprobs"
