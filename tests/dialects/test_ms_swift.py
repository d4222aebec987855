from pathlib import Path

import pytest
from packaging.version import Version
from reading import lost_names, read_file, read_one, rewritten, source_of

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

DIALECT = declared()["ms_swift"]

TRAINER = """\
NPROC_PER_NODE=8 \\
swift rlhf \\
    --rlhf_type grpo \\
    --model org/policy \\
    --use_vllm true \\
    --vllm_mode colocate \\
    --vllm_gpu_memory_utilization 0.5 \\
    --torch_dtype bfloat16
"""
CHOICE = "os.environ['VLLM_USE_V1'] = os.environ.get('VLLM_USE_V1', '0')"
SERVER = """\
swift rollout --model org/policy --vllm_max_model_len 4096 \\
    --vllm_engine_kwargs '{"async_scheduling": false, "logprobs_mode": "raw_logprobs", "no_such_thing": 1}'
"""
YAML = "rlhf_type: grpo\nmodel: org/policy\nuse_vllm: true\nvllm_mode: colocate\ntemperature: 0.7\n"


def test_the_colocated_engine_gets_ms_swifts_own_defaults() -> None:
    config = read_one(DIALECT, TRAINER, "0.18.1", "run.sh")
    assert config.engine["gpu_memory_utilization"].value == 0.5
    assert config.engine["enable_prefix_caching"].value is True
    assert config.engine["disable_custom_all_reduce"].value is True
    assert config.engine["dtype"].value == "bfloat16" and config.facts.dtype == "bfloat16"


def test_processed_logprobs_depend_on_vllm_and_on_the_release() -> None:
    assert read_one(DIALECT, TRAINER, "0.18.1", "run.sh").engine["logprobs_mode"].value == "processed_logprobs"
    assert isinstance(read_one(DIALECT, TRAINER, "0.10.2", "run.sh").engine["logprobs_mode"].value, Unknown)
    assert "logprobs_mode" not in read_one(DIALECT, TRAINER, "0.10.1", "run.sh").engine
    telling = TRAINER.rstrip() + " --rollout_importance_sampling_mode token_mask\n"
    assert read_one(DIALECT, telling, "0.10.2", "run.sh").engine["logprobs_mode"].value == "processed_logprobs"


def test_engine_kwargs_arrive_unless_the_code_writes_over_them() -> None:
    config = read_one(DIALECT, SERVER, "0.18.1", "run.sh")
    assert config.engine["async_scheduling"].value is False
    losses = {lost.name: lost.loss for lost in config.lost}
    assert losses == {"logprobs_mode": Loss.OVERRULED, "no_such_thing": Loss.UNKNOWN_KEY}


def test_the_server_leaves_prefix_caching_to_vllm_and_sampling_to_the_trainer() -> None:
    config = read_one(DIALECT, SERVER, "0.18.1", "run.sh")
    assert "enable_prefix_caching" not in config.engine
    assert isinstance(config.sampling.get("temperature").value, Unknown)


def test_a_guarded_argument_that_vllm_lacks_is_lost_with_a_warning_only() -> None:
    text = TRAINER.rstrip() + " --vllm_mm_processor_cache_gb 2\n"
    assert lost_names(read_one(DIALECT, text, "0.9.2", "run.sh")) == {"mm_processor_cache_gb"}


def test_a_trainer_in_server_mode_says_nothing_of_the_engine() -> None:
    config = read_one(DIALECT, TRAINER.replace("colocate", "server"), "0.18.1", "run.sh")
    assert isinstance(config.engine.get("logprobs_mode").value, Unknown)
    assert lost_names(config) == {"gpu_memory_utilization"}


def test_sampling_defaults_that_changed_with_version_4_are_unknown_without_a_telling_key() -> None:
    sampling = read_one(DIALECT, TRAINER, "0.18.1", "run.sh").sampling
    assert sampling["temperature"].value == 0.9 and isinstance(sampling["top_p"].value, Unknown)
    newer = read_one(DIALECT, TRAINER.rstrip() + " --min_p 0.0\n", "0.18.1", "run.sh").sampling
    assert (newer["top_p"].value, newer["top_k"].value) == (1.0, -1)


def test_the_mismatch_is_logged_only_with_a_correction_or_on_request() -> None:
    assert read_one(DIALECT, YAML, "0.18.1").facts.logs_mismatch is False
    logged = read_one(DIALECT, YAML + "log_rollout_offpolicy_metrics: true\n", "0.18.1")
    assert logged.facts.logs_mismatch is True and logged.facts.importance_sampling_correction is False
    corrected = read_one(DIALECT, YAML + "rollout_importance_sampling_mode: sequence_mask\n", "0.18.1")
    assert corrected.facts.importance_sampling_mode == "sequence_mask"


def test_a_config_named_on_the_command_line_is_read_under_its_flags(tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(YAML)
    script = tmp_path / "run.sh"
    script.write_text("swift rlhf --config grpo.yaml --temperature 0.4\n")
    config = read_file(DIALECT, script, "0.18.1")
    assert config.sampling["temperature"].value == 0.4 and config.parts == (str(tmp_path / "grpo.yaml"),)


def test_settings_are_written_as_flags_and_as_yaml_keys() -> None:
    trainer = read_one(DIALECT, TRAINER, "0.18.1", "run.sh")
    text = rewritten(trainer, TRAINER, "enable_prefix_caching", False)
    assert text.endswith("bfloat16 \\\n    --vllm_enable_prefix_caching false\n")
    config = read_one(DIALECT, YAML, "0.18.1")
    assert rewritten(config, YAML, "enforce_eager", True) == YAML + "vllm_enforce_eager: true\n"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("swift sft --model x\n", "run.sh"),
        ("swift rlhf --rlhf_type dpo --use_vllm true\n", "run.sh"),
        ("rlhf_type: grpo\nuse_vllm: false\n", "run.yaml"),
        ("rollout: {name: swift}\n", "run.yaml"),
    ],
)
def test_files_without_vllm_rollouts_are_not_recognised(text: str, path: str) -> None:
    assert not DIALECT.recognise(source_of(text, path))


def test_without_a_mode_only_an_old_release_runs_and_it_passes_no_logprobs_mode() -> None:
    text = TRAINER.replace("    --vllm_mode colocate \\\n", "    --tensor_parallel_size 4 \\\n")
    config = read_one(DIALECT, text, "0.11.0", "run.sh")
    assert config.offline and "logprobs_mode" not in config.engine
    assert config.engine["tensor_parallel_size"].value == 4
    assert any("3.11.0" in sentence for sentence in config.not_seen)


def test_words_that_may_hold_any_option_are_named() -> None:
    config = read_one(DIALECT, TRAINER.rstrip() + ' "$@"\n', "0.18.1", "run.sh")
    assert any("further options" in sentence for sentence in config.not_seen)


@pytest.mark.parametrize(
    ("release", "line", "script", "value"),
    [
        ("3.4.1", CHOICE, "", "0"),
        ("3.4.1", CHOICE, "export VLLM_USE_V1=1\n", "1"),
        ("3.4.1", "", "", Unknown),
        ("3.5.0", "", "", None),
        ("3.5.0.dev0", CHOICE, "", "0"),
    ],
)
def test_the_engine_that_a_copy_chooses_is_known_while_its_line_is_there(
    release: str, line: str, script: str, value: object, tmp_path: Path
) -> None:
    engine = tmp_path / "swift" / "llm" / "infer" / "infer_engine" / "vllm_engine.py"
    engine.parent.mkdir(parents=True)
    engine.write_text(f"import os\n{line}\n")
    (tmp_path / "swift" / "version.py").write_text(f"__version__ = '{release}'\n")
    run = tmp_path / "run.sh"
    command = "swift rlhf --rlhf_type grpo --use_vllm true --model m\n"
    (config,) = DIALECT.read(Source(str(run), script + command), Version("0.8.5"))
    found = config.environment.get("VLLM_USE_V1")
    assert isinstance(found.value, Unknown) if value is Unknown else (found and found.value) == value


def test_arguments_that_the_colocated_engine_is_not_given_are_lost() -> None:
    text = TRAINER.rstrip() + " --vllm_disable_custom_all_reduce false --vllm_pipeline_parallel_size 2\n"
    config = read_one(DIALECT, text, "0.18.1", "run.sh")
    assert lost_names(config) == {"disable_custom_all_reduce", "pipeline_parallel_size"}
    assert config.engine["disable_custom_all_reduce"].value is True


@pytest.mark.parametrize(("address", "colocated"), [("", True), ("vllm_server_host: 10.0.0.1\n", False)])
def test_without_a_mode_an_address_makes_it_the_servers(address: str, colocated: bool) -> None:
    config = read_one(DIALECT, "rlhf_type: grpo\nuse_vllm: true\n" + address, "0.11.0")
    assert isinstance(config.engine, Elsewhere) is not colocated


def test_the_engines_of_a_run_with_ray_are_open() -> None:
    config = read_one(DIALECT, "rlhf_type: grpo\nuse_vllm: true\nrollout: {gpus: 8}\n", "0.18.1")
    assert isinstance(config.engine.get("seed").value, Unknown)
