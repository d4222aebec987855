from pathlib import Path

import pytest
from packaging.version import Version
from reading import lost_names, put, read_one, rewritten, source_of

from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, Origin
from rlaudit.unknown import Unknown

DIALECT = declared()["openrlhf"]

FLAT = """\
export VLLM_ATTENTION_BACKEND=FLASH_ATTN
ray job submit --address="http://127.0.0.1:8265" \\
   --runtime-env-json='{"env_vars": {"VLLM_LOGGING_LEVEL": "DEBUG"}}' \\
   -- python3 -m openrlhf.cli.train_ppo_ray \\
   --pretrain org/policy \\
   --vllm_num_engines 4 \\
   --enable_prefix_caching \\
   --temperature 0.9
"""
DOTTED = """\
python3 -m openrlhf.cli.train_ppo_ray \\
   --actor.model_name_or_path org/policy \\
   --vllm.num_engines 2 \\
   --vllm.tensor_parallel_size 2 \\
   --rollout.top_p 0.95
"""


def test_both_generations_of_options_give_the_same_settings() -> None:
    flat, dotted = (read_one(DIALECT, text, "0.18.1", "run.sh") for text in (FLAT, DOTTED))
    assert flat.engine["enable_prefix_caching"].value is True
    assert flat.sampling["temperature"].value == 0.9 and dotted.sampling["top_p"].value == 0.95
    assert dotted.engine["distributed_executor_backend"].value == "ray"
    assert (flat.facts.replicas, dotted.facts.replicas) == (4, 2)


def test_an_absent_switch_is_passed_as_false_and_not_left_to_vllm() -> None:
    setting = read_one(DIALECT, DOTTED, "0.18.1", "run.sh").engine["enable_prefix_caching"]
    assert (setting.value, setting.origin) == (False, Origin.FRAMEWORK)


def test_without_the_correction_no_logprobs_are_asked_for_and_no_mode_is_passed() -> None:
    config = read_one(DIALECT, DOTTED, "0.18.1", "run.sh")
    assert "logprobs_mode" not in config.engine and config.sampling["logprobs"].value is None
    assert config.facts.uses_rollout_logprobs is False and config.facts.logs_mismatch is False


@pytest.mark.parametrize(
    ("text", "options", "kind"),
    [
        (FLAT, "--enable_vllm_is_correction --vllm_is_correction_type icepop", "icepop"),
        (DOTTED, "--algo.advantage.is_correction_enable", "tis"),
        (DOTTED, "--algo.advantage.is_correction_level seq", "seq mask"),
    ],
)
def test_the_correction_of_every_release_brings_processed_logprobs(text: str, options: str, kind: str) -> None:
    config = read_one(DIALECT, text.rstrip() + f" {options}\n", "0.18.1", "run.sh")
    assert config.engine["logprobs_mode"].value == "processed_logprobs"
    assert config.engine["max_logprobs"].value == 1
    assert config.facts.importance_sampling_mode == kind


def test_a_level_of_off_is_off() -> None:
    text = DOTTED.rstrip() + " --algo.advantage.is_correction_level off\n"
    config = read_one(DIALECT, text, "0.18.1", "run.sh")
    assert config.facts.importance_sampling_correction is False
    assert "VLLM_USE_V1" not in config.environment


def test_partial_rollouts_pause_with_keep_and_the_default_of_clear_cache() -> None:
    text = DOTTED.rstrip() + " --train.partial_rollout_enable --train.full_determinism_enable\n"
    config = read_one(DIALECT, text, "0.18.1", "run.sh")
    assert config.facts.pause_arguments == ["mode"] and config.facts.pause_clears_cache is True
    assert config.facts.weight_updates == "in flight"
    assert config.environment["VLLM_ENABLE_V1_MULTIPROCESSING"].value == "0"


def test_the_prefix_cache_is_reset_only_where_it_is_on_and_before_the_weights() -> None:
    on = read_one(DIALECT, FLAT, "0.18.1", "run.sh").trainer["resets_prefix_cache"]
    assert on.value is True and "before the weights" in on.note
    assert read_one(DIALECT, DOTTED, "0.18.1", "run.sh").facts.resets_prefix_cache is False


def test_a_submitted_job_does_not_see_the_shells_variables() -> None:
    config = read_one(DIALECT, FLAT, "0.18.1", "run.sh")
    assert lost_names(config) == {"VLLM_ATTENTION_BACKEND"} and config.lost[0].loss is Loss.NOT_PASSED
    assert config.environment["VLLM_LOGGING_LEVEL"].value == "DEBUG"
    direct = read_one(DIALECT, "export VLLM_ATTENTION_BACKEND=FLASH_ATTN\n" + DOTTED, "0.18.1", "run.sh")
    assert direct.environment["VLLM_ATTENTION_BACKEND"].value == "FLASH_ATTN"


def test_lengths_of_the_oldest_generation_add_up() -> None:
    text = FLAT.rstrip() + " --prompt_max_len 1024 --generate_max_len 3072\n"
    config = read_one(DIALECT, text, "0.9.2", "run.sh")
    assert config.engine["max_model_len"].value == 4096 and config.sampling["max_tokens"].value == 3072
    assert "VLLM_USE_V1" not in config.environment


def test_a_switch_can_be_added_and_a_value_replaced_in_the_commands_own_style() -> None:
    config = read_one(DIALECT, DOTTED, "0.18.1", "run.sh")
    assert rewritten(config, DOTTED, "enforce_eager", True).endswith("0.95 \\\n   --vllm.enforce_eager\n")
    assert "--vllm.tensor_parallel_size 4" in rewritten(config, DOTTED, "tensor_parallel_size", 4)
    assert config.write("enable_prefix_caching", False) is None
    assert config.write("async_scheduling", False) is None


def test_a_run_without_vllm_engines_is_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("python -m openrlhf.cli.train_ppo_ray --pretrain x\n", "run.sh"))
    assert not DIALECT.recognise(source_of("# openrlhf.cli.train_ppo_ray --vllm_num_engines 2\n", "run.sh"))


def test_sampling_is_complete_since_requests_are_built_in_code() -> None:
    sampling = read_one(DIALECT, DOTTED, "0.29.0", "run.sh").sampling
    assert sampling["top_p"].value == 0.95
    assert (sampling["repetition_penalty"].value, sampling["min_p"].value) == (1.0, 0.0)
    assert sampling["presence_penalty"].origin is Origin.FRAMEWORK


def test_a_command_in_an_array_is_one_engine_however_often_it_is_printed_and_its_defaults_are_said() -> None:
    text = (
        "RUN=(python -m openrlhf.cli.train_ppo_ray\n  --vllm_num_engines 1\n"
        '  --vllm_gpu_memory_utilization "${SHARE:-0.5}")\n'
        'printf "%q " "${RUN[@]}"\npython - "${RUN[@]}" <<E\nimport sys\nE\nsetsid "${RUN[@]}" &\n'
    )
    config = read_one(DIALECT, text, "0.18.1", "run.sh")
    assert config.engine["gpu_memory_utilization"].value == 0.5
    assert "SHARE is taken at its default 0.5" in config.not_seen


@pytest.mark.parametrize("ends", ["2.0", "0.5 5.0", "0.5 5.0 9"])
def test_every_word_of_an_interval_is_listed(ends: str) -> None:
    text = DOTTED.rstrip() + f" \\\n   --algo.advantage.is_correction_threshold {ends} --rollout.top_k 5\n"
    options = read_one(DIALECT, text, "0.18.1", "run.sh").options
    assert str(options["algo.advantage.is_correction_threshold"].value) == ends


@pytest.mark.parametrize(
    "runtime",
    [
        """'{"working_dir": "'$(pwd)'", "n": '$N', "env_vars": {"VLLM_X": "1", "VLLM_PORT": "'$P'"}}'""",
        r'''"{\"working_dir\": \"${DIR}\", \"env_vars\": {\"VLLM_X\": \"1\", \"VLLM_PORT\": \"$P\"}}"''',
    ],
)
@pytest.mark.parametrize("joint", ["=", " "])
def test_what_a_runtime_environment_leaves_open_makes_nothing_else_of_it_unknown(joint: str, runtime: str) -> None:
    script = f"DIR=$(pwd)/x\nray job submit --runtime-env-json{joint}{runtime} -- {DOTTED}"
    environment = read_one(DIALECT, script, "0.18.1", "run.sh").environment
    assert environment["VLLM_X"].value == "1"
    assert isinstance(environment["VLLM_PORT"].value, Unknown)


@pytest.mark.parametrize("runtime", ["$(cat job.json)", "'{\"env_vars\": '$V'}'"])
def test_a_runtime_environment_that_is_not_told_is_said(runtime: str) -> None:
    script = f"ray job submit --runtime-env-json={runtime} -- {DOTTED}"
    assert any("--runtime-env-json" in said for said in read_one(DIALECT, script, "0.18.1", "run.sh").not_seen)


ENGINE = """
import os
import vllm
class Actor:
    def __init__(self, **kwargs):
        if vllm.__version__ >= "0.9.0":
            os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
        self.llm = vllm.AsyncLLMEngine.from_engine_args(vllm.AsyncEngineArgs(
            model=kwargs["model"], seed=1, dtype="bfloat16", enforce_eager=True, max_model_len=8, block_size=16))
"""


def test_a_copy_without_a_word_of_a_correction_leaves_open_whether_one_can_be_switched_on(tmp_path: Path) -> None:
    command = "python -m openrlhf.cli.train_ppo_ray --vllm_num_engines 2 --advantage_estimator rloo\n"
    files = {
        "openrlhf/trainer/ray/vllm_engine.py": ENGINE,
        "openrlhf/models/loss.py": "class PolicyLoss: ...\n",
        "run.sh": command,
    }
    put(tmp_path, files)
    (config,) = DIALECT.read(Source(str(tmp_path / "run.sh"), command), Version("0.18.1"))
    assert isinstance(config.facts.importance_sampling_correction, Unknown)
    assert isinstance(config.facts.logs_mismatch, Unknown)
    assert config.options["advantage_estimator"].value == "rloo"


@pytest.mark.parametrize("there", [True, False])
def test_what_a_line_of_the_framework_decides_is_open_in_a_copy_without_the_line(tmp_path: Path, there: bool) -> None:
    files = {
        "openrlhf/trainer/ray/vllm_engine.py": "os.environ['VLLM_ALLOW_INSECURE_SERIALIZATION'] = '1'",
        "openrlhf/models/utils.py": "logits.div_(temperature)",
        "openrlhf/cli/train_ppo_ray.py": "'--vllm.gpu_memory_utilization', type=float, default=0.95",
    }
    put(tmp_path, {name: text.replace("'", '"') if there else "" for name, text in files.items()})
    (config,) = DIALECT.read(Source(str(tmp_path / "run.sh"), DOTTED), Version("0.18.1"))
    found = (
        config.environment["VLLM_ALLOW_INSECURE_SERIALIZATION"],
        config.trainer["divides_by_temperature"],
        config.engine["gpu_memory_utilization"],
    )
    assert [one.value for one in found if one.known] == (["1", True, 0.95] if there else [])
    assert config.engine["tensor_parallel_size"].value == 2


@pytest.mark.parametrize(
    ("options", "vllm", "wanted"),
    [
        ("--vllm_num_engines 1 --bf16", "0.10.2", None),
        ("--vllm_num_engines 1 --bf16 --async_train", "0.10.2", "1"),
        ("--vllm_num_engines 1", "0.11.0", None),
        ("--vllm_num_engines 1 --partial_rollout", "0.11.0", "1"),
        ("--vllm.num_engines 1", "0.10.2", "1"),
        ("--vllm.num_engines 1", "0.29.0", None),
    ],
)
def test_the_release_says_whether_the_engine_is_chosen(options: str, vllm: str, wanted: str | None) -> None:
    text = f"python -m openrlhf.cli.train_ppo_ray {options}\n"
    setting = read_one(DIALECT, text, vllm, "run.sh").environment.get("VLLM_USE_V1")
    assert (None if setting is None else setting.value) == wanted


def test_a_pin_tells_the_release(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("openrlhf==0.9.9\n")
    text = "python -m openrlhf.cli.train_ppo_ray --vllm_num_engines 1 --partial_rollout\n"
    (config,) = DIALECT.read(Source(str(tmp_path / "run.sh"), text), Version("0.18.1"))
    assert config.releases is not None and str(config.releases.oldest) == "0.9.9"
    assert config.facts.dtype == "bfloat16"
