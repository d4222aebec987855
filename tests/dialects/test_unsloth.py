from pathlib import Path

import pytest
from reading import lost_names, read_one, rewritten, source_of

from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss
from rlaudit.unknown import Unknown

DIALECT, TRL = declared()["unsloth"], declared()["trl"]

TEXT = """\
import os
os.environ["UNSLOTH_VLLM_STANDBY"] = "1"
from unsloth import FastLanguageModel
from trl import GRPOConfig
from vllm import SamplingParams

length = 1024
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="org/policy",
    max_seq_length=length,
    load_in_4bit=False,
    fast_inference=True,
    gpu_memory_utilization=0.7,
)
wanted = SamplingParams(min_p=0.1, top_p=1.0, top_k=-1, temperature=0.2, stop=["x"])
config = GRPOConfig(vllm_sampling_params=wanted, temperature=0.8, num_generations=4)
"""


def test_arguments_of_from_pretrained_become_engine_arguments() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1", "train.py")
    assert config.engine["max_model_len"].value == 1024
    assert config.engine["enable_prefix_caching"].value is True
    assert config.engine["enable_sleep_mode"].value is True
    assert config.model is not None and config.model.value == "org/policy"
    assert config.offline


def test_arguments_that_load_vllm_chooses_itself_are_unknown() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1", "train.py")
    assert isinstance(config.engine["max_num_seqs"].value, Unknown)
    assert isinstance(config.engine["logprobs_mode"].value, Unknown)


def test_four_bit_weights_are_the_default() -> None:
    config = read_one(DIALECT, TEXT.replace("    load_in_4bit=False,\n", ""), "0.18.1", "train.py")
    assert config.engine["quantization"].value == "bitsandbytes"


def test_the_temperature_of_vllm_sampling_params_is_overruled_by_the_config() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1", "train.py")
    assert config.sampling["temperature"].value == 0.8
    assert [(lost.name, lost.loss) for lost in config.lost] == [("temperature", Loss.OVERRULED)]


def test_filters_of_vllm_sampling_params_count_in_newer_releases_only() -> None:
    sampling = read_one(DIALECT, TEXT, "0.18.1", "train.py").sampling
    assert isinstance(sampling["min_p"].value, Unknown) and sampling["min_p"].written == 0.1
    assert sampling["top_p"].value == 1.0 and sampling["stop"].value == ["x"]


def test_the_fp32_head_needs_a_vllm_that_has_it() -> None:
    text = TEXT.replace("UNSLOTH_VLLM_STANDBY", "UNSLOTH_VLLM_FP32_LM_HEAD")
    new = read_one(DIALECT, text, "0.26.0", "train.py")
    assert new.facts.head_dtype == "float32" and new.engine["hf_overrides"].value == {"head_dtype": "float32"}
    old = read_one(DIALECT, text, "0.18.1", "train.py")
    assert "rollout_head_dtype" not in old.trainer and "UNSLOTH_VLLM_FP32_LM_HEAD" in lost_names(old)


def test_without_a_grpo_config_sampling_is_unknown() -> None:
    config = read_one(DIALECT, TEXT.partition("wanted")[0], "0.18.1", "train.py")
    assert isinstance(config.sampling.get("temperature").value, Unknown)
    assert config.trainer == {}


def test_an_old_vllm_does_not_get_what_it_does_not_know() -> None:
    assert "enable_sleep_mode" in read_one(DIALECT, TEXT, "0.8.5", "train.py").engine
    assert "logprobs_mode" not in read_one(DIALECT, TEXT, "0.8.5", "train.py").engine


def test_a_keyword_is_written_into_the_call() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1", "train.py")
    text = rewritten(config, TEXT, "enable_prefix_caching", False)
    assert "    gpu_memory_utilization=0.7,\n    enable_prefix_caching=False,\n)" in text
    assert config.write("async_scheduling", False) is None


def test_a_model_without_fast_inference_is_not_recognised_and_trl_leaves_it_alone() -> None:
    slow = source_of(TEXT.replace("fast_inference=True", "fast_inference=False"), "train.py")
    assert not DIALECT.recognise(slow)
    assert not TRL.recognise(source_of(TEXT, "train.py"))


def test_keywords_that_the_file_does_not_tell_leave_the_engine_open() -> None:
    text = "# fast_inference\ndef load(**more):\n    return unsloth.FastLanguageModel.from_pretrained('m', **more)\n"
    assert not DIALECT.recognise(source_of(text.replace("unsloth.Fast", "unsloth.Slow"), "train.py"))
    config = read_one(DIALECT, text.replace("unsloth.Fast", "Fast").replace("# ", "# unsloth "), "0.18.1", "train.py")
    assert isinstance(config.engine.get("max_model_len").value, Unknown)
    assert "max_model_len" not in config.engine


def test_sampling_params_from_elsewhere_leave_no_filter_at_its_default() -> None:
    text = TEXT.replace("wanted = SamplingParams(", "other = dict(")
    config = read_one(DIALECT, text, "0.18.1", "train.py")
    assert config.sampling["temperature"].value == 0.8 and isinstance(config.sampling["min_p"].value, Unknown)


ENVIRONMENT = "dependencies:\n  - pip:\n      - unsloth=={}\n      - trl==0.15.2\n      - vllm==0.8.5\n"


@pytest.mark.parametrize(
    ("pin", "passes"), [("2025.2.15", False), ("2026.10.9", True), ("2026.9.5", None)]
)  # fmt: skip
def test_a_pin_of_unsloth_tells_whether_processed_logprobs_are_asked_for(
    tmp_path: Path, pin: str, passes: bool | None
) -> None:
    (tmp_path / "environment.yml").write_text(ENVIRONMENT.format(pin))
    mode = read_one(DIALECT, TEXT, "0.18.1", str(tmp_path / "train.py")).engine.get("logprobs_mode")
    if passes is None:
        assert mode is not None and not mode.known
    else:
        assert (mode is not None and mode.value == "processed_logprobs") is passes
    assert passes is not False or mode is None


def test_a_pin_of_trl_tells_the_defaults_of_the_config(tmp_path: Path) -> None:
    text = TEXT.replace("temperature=0.8, ", "")
    (tmp_path / "environment.yml").write_text("dependencies:\n  - pip:\n      - trl==0.19.1\n")
    config = read_one(DIALECT, text, "0.18.1", str(tmp_path / "train.py"))
    assert config.sampling["temperature"].value == 1.0 and config.refused_pin is None
    assert config.facts.importance_sampling_correction is False


def test_keywords_of_the_config_that_the_file_does_not_tell_leave_sampling_and_trainer_open() -> None:
    text = "def run(**more):\n" + "".join(f"    {line}\n" for line in TEXT.splitlines())
    text = text.replace("num_generations=4)", "num_generations=4, **more)")
    config = read_one(DIALECT, text, "0.18.1", "train.py")
    assert not config.sampling.get("repetition_penalty").known
    assert all(not one.known for name, one in config.trainer.items() if one.place is None and name in OF_THE_CONFIG)


OF_THE_CONFIG = {"importance_sampling_correction", "uses_rollout_logprobs", "dtype"}
