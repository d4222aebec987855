import pytest
from reading import read_all, read_one, rewritten, source_of

from rlaudit.dialects.declared import declared
from rlaudit.unknown import Unknown

DIALECT = declared()["open_instruct"]

SHELL = """\
python mason.py --env VLLM_ATTENTION_BACKEND=FLASH_ATTN --num_nodes 2 -- python open_instruct/grpo_fast.py \\
    --model_name_or_path org/policy \\
    --max_prompt_token_length 512 \\
    --response_length 1024 \\
    --vllm_num_engines 8 \\
    --vllm_top_p 0.9 \\
    --inflight_updates True \\
    --vllm_enable_prefix_caching
"""
BEAKER = """\
tasks:
  - name: listed
    arguments:
      - python
      - open_instruct/grpo_fast.py
      - --vllm_num_engines
      - "4"
      - --vllm_enforce_eager
  - name: scripted
    command: ["/bin/bash", "-c"]
    arguments:
      - |
        export VLLM_USE_V1=1
        python open_instruct/grpo_fast.py \\
          --vllm_num_engines 2 \\
          --vllm_gpu_memory_utilization 0.8
"""


def test_options_and_literals_of_the_code_become_engine_arguments() -> None:
    config = read_one(DIALECT, SHELL, "0.19.1", "run.sh")
    assert config.engine["enable_prefix_caching"].value is True
    assert config.engine["disable_cascade_attn"].value is True
    assert config.engine["max_model_len"].value == 1536
    assert config.sampling["top_p"].value == 0.9
    assert config.facts.replicas == 8 and config.facts.weight_updates == "in flight"


def test_the_launchers_variables_are_the_jobs() -> None:
    config = read_one(DIALECT, SHELL, "0.19.1", "run.sh")
    assert config.environment["VLLM_ATTENTION_BACKEND"].value == "FLASH_ATTN"


def test_the_logprobs_mode_is_unknown_unless_a_newer_option_tells_the_commit() -> None:
    assert isinstance(read_one(DIALECT, SHELL, "0.19.1", "run.sh").engine["logprobs_mode"].value, Unknown)
    newer = SHELL.rstrip() + " --rho_mask_metric tv\n"
    assert read_one(DIALECT, newer, "0.19.1", "run.sh").engine["logprobs_mode"].value == "processed_logprobs"
    assert "logprobs_mode" not in read_one(DIALECT, SHELL, "0.9.2", "run.sh").engine


def test_the_three_generations_of_the_correction_are_told_apart() -> None:
    def corrected(option: str) -> object:
        config = read_one(DIALECT, SHELL.rstrip() + f" {option}\n", "0.19.1", "run.sh")
        return config.trainer["importance_sampling_correction"].value

    assert corrected("") is True
    assert corrected("--truncated_importance_sampling_ratio_cap 2.0") is True
    assert corrected("--truncated_importance_sampling_ratio_cap 0.0") is False
    assert corrected("--use_rho_correction False") is False
    assert corrected("--rollout_importance_correction none") is False


@pytest.mark.parametrize(
    ("vllm", "option", "wanted"),
    [
        ("0.14.1", "", {"seed": 1, "temperature": 0.7, "corrected": False, "updates": "between rollouts"}),
        ("0.16.0", "", {"seed": 1, "temperature": 0.7, "corrected": None, "updates": None}),
        ("0.18.0", "", {"seed": None, "temperature": 0.7, "corrected": True, "updates": "in flight"}),
        ("0.19.1", "", {"seed": None, "temperature": None, "corrected": True, "updates": "in flight"}),
        ("0.19.1", "--rho_mask_metric tv", {"seed": 42, "temperature": 1.0, "corrected": True, "updates": "in flight"}),
    ],
)
def test_the_vllm_and_the_options_tell_the_day_and_with_it_the_defaults(
    vllm: str, option: str, wanted: dict[str, object]
) -> None:
    text = f"python open_instruct/grpo_fast.py --vllm_num_engines 2 {option}\n"
    config = read_one(DIALECT, text, vllm, "run.sh")
    found = {
        "seed": config.engine["seed"],
        "temperature": config.sampling["temperature"],
        "corrected": config.trainer["importance_sampling_correction"],
        "updates": config.trainer["weight_updates"],
    }
    assert {name: one.value if one.known else None for name, one in found.items()} == wanted


def test_evaluation_may_need_a_longer_context() -> None:
    text = SHELL.rstrip() + " --eval_response_length 4096\n"
    assert read_one(DIALECT, text, "0.19.1", "run.sh").engine["max_model_len"].value == 4608


def test_rollout_logprobs_as_old_ones_mean_no_recomputation() -> None:
    text = SHELL.rstrip() + " --use_vllm_logprobs true\n"
    assert read_one(DIALECT, text, "0.19.1", "run.sh").facts.recomputes_old_logprobs is False


def test_beaker_lists_and_scripts_are_read_at_their_places() -> None:
    listed, scripted = read_all(DIALECT, BEAKER, "0.19.1", "job.yaml")
    assert listed.facts.replicas == 4 and listed.engine["enforce_eager"].value is True
    share = scripted.engine["gpu_memory_utilization"]
    assert share.place is not None and BEAKER[share.place.start : share.place.end] == "0.8"
    assert scripted.environment["VLLM_USE_V1"].value == "1" and "VLLM_USE_V1" not in listed.environment


def test_a_list_and_a_script_are_edited_in_their_own_way() -> None:
    listed, scripted = read_all(DIALECT, BEAKER, "0.19.1", "job.yaml")
    text = rewritten(listed, BEAKER, "enable_prefix_caching", True)
    assert "      - --vllm_enforce_eager\n      - --vllm_enable_prefix_caching\n" in text
    assert "--vllm_gpu_memory_utilization 0.6" in rewritten(scripted, BEAKER, "gpu_memory_utilization", 0.6)


@pytest.mark.parametrize("options", ["$RUN", '"$CONFIG" $MORE', "configs/run.yaml"])
def test_an_option_that_stands_in_another_place_is_no_default(options: str) -> None:
    text = f"python open_instruct/grpo_fast.py {options} --seed 3\n"
    config = read_one(DIALECT, text, "0.19.1", "run.sh")
    for setting in (config.sampling["temperature"], config.engine["tensor_parallel_size"], config.trainer["dtype"]):
        assert isinstance(setting.value, Unknown)
    assert config.engine["seed"].value == 3 and "attention_backend" not in config.engine


def test_what_a_user_adds_behind_the_options_leaves_the_defaults() -> None:
    config = read_one(DIALECT, SHELL.rstrip() + ' "$@"\n', "0.19.1", "run.sh")
    assert config.engine["tensor_parallel_size"].value == 1 and config.sampling["top_p"].value == 0.9


def test_other_scripts_are_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("python open_instruct/finetune.py --x 1\n", "run.sh"))
    assert not DIALECT.recognise(source_of("cat open_instruct/grpo_fast.py.bak\n", "run.sh"))


def test_an_option_that_begins_like_trls_flag_does_not_make_it_trls() -> None:
    from rlaudit.dialects.declared import declared

    text = "accelerate launch open_instruct/grpo_fast.py --vllm_num_engines 2 --use_vllm_logprobs true\n"
    assert DIALECT.recognise(source_of(text, "run.sh"))
    trl = declared()["trl"]
    assert not trl.recognise(source_of(text, "run.sh"))
    assert trl.recognise(source_of(text.replace("--use_vllm_logprobs true", "--use-vllm=true"), "run.sh"))
