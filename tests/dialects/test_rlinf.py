"""RLinf: the vllm section of `rollout`, field by field."""

from reading import lost_names, read_one, rewritten, source_of

from rlaudit.dialects.declared import declared
from rlaudit.unknown import Unknown

DIALECT = declared()["rlinf"]

TEXT = """\
cluster:
  component_placement: {actor: all}
runner:
  seq_length: 4096
algorithm:
  importance_sampling_fix: true
  sampling_params: {do_sample: true, temperature: 0.6, top_k: -1}
rollout:
  rollout_backend: vllm
  tensor_parallel_size: 2
  max_running_requests: 64
  return_logprobs: true
  model: {model_path: org/model, precision: bf16}
  vllm:
    enable_prefix_caching: false
    logprobs_mode: processed_logprobs
"""


def test_the_vllm_section_and_its_defaults_are_read() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1")
    engine = {name: setting.value for name, setting in config.engine.items()}
    assert engine["enable_prefix_caching"] is False and engine["enable_chunked_prefill"] is True
    assert (engine["max_num_seqs"], engine["max_model_len"], engine["dtype"]) == (64, 4096, "bfloat16")
    assert (
        config.environment["VLLM_ATTENTION_BACKEND"].value == "FLASH_ATTN" and "VLLM_USE_V1" not in config.environment
    )
    assert config.sampling["temperature"].value == 0.6 and config.sampling["logprobs"].value == 0
    assert config.facts.importance_sampling_correction is True and config.facts.uses_rollout_logprobs is True
    assert lost_names(config) == {"logprobs_mode"}


def test_a_field_is_written_where_it_is_read() -> None:
    config = read_one(DIALECT, TEXT, "0.18.1")
    assert "    enable_prefix_caching: true" in rewritten(config, TEXT, "enable_prefix_caching", True)
    assert "  enforce_eager: true" in rewritten(config, TEXT, "enforce_eager", True)
    assert config.write("async_scheduling", False) is None


def test_sglang_and_other_files_are_none_of_it() -> None:
    assert not DIALECT.recognise(source_of(TEXT.replace("backend: vllm", "backend: sglang")))
    assert not DIALECT.recognise(source_of("rollout_backend: vllm\n"))


def test_what_the_command_line_decides_is_open() -> None:
    text = TEXT.replace("  return_logprobs", "  validate_weight: ${oc.env:VALIDATE}\n  return_logprobs")
    assert isinstance(read_one(DIALECT, text, "0.18.1").engine["load_format"].value, Unknown)
    assert read_one(DIALECT, TEXT, "0.18.1").engine["load_format"].value == "dummy"
    greedy = TEXT.replace("do_sample: true", "do_sample: false")
    assert read_one(DIALECT, greedy, "0.18.1").sampling["temperature"].value == 0
