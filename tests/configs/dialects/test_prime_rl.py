from pathlib import Path

import pytest
from reading import read_file, read_one, rewritten, source_of

from rlaudit.configs.dialects.prime_rl.read import DIALECT
from rlaudit.configs.rollout_config import Loss, Origin
from rlaudit.configs.syntax.node import Unknown

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
    assert config.says("salts_prefix_cache") is True and config.says("pause_clears_cache") is False
    assert config.says("rollout_head_dtype") == "float32"
    assert config.says("importance_sampling_mode") == "dppo mask"


def test_an_unwritten_head_is_unknown_since_its_default_changed() -> None:
    config = read_one(DIALECT, RUN.replace("enable_fp32_lm_head = true", ""), "0.26.0", "rl.toml")
    assert isinstance(config.trainer["rollout_head_dtype"].value, Unknown)


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


def test_the_charts_values_say_how_many_and_nothing_of_the_engine() -> None:
    text = "image: {repository: org/prime-rl}\norchestrator: {}\ntrainer: {}\ninference: {replicas: 3, command: ''}\n"
    config = read_one(DIALECT, text, "0.26.0", "values.yaml")
    assert config.says("replicas") == 3
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
