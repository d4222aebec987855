"""A project's own config with mappings of vLLM's engine arguments, which no framework's dialect reads."""

import pytest
from packaging.version import Version
from reading import read_all, read_one, rewritten, source_of

from rlaudit.configs.elsewhere import Elsewhere
from rlaudit.configs.readers.mapping import DIALECT
from rlaudit.inspection.read_configs import known_dialects, recognise
from rlaudit.unknown import Unknown

ROLES = """\
loss:
  beta: 0.001
sampling:
  temperature: 0.6
  top_k: 20
  drop_short: true
eval_sampling:
  temperature: 0.0
  max_tokens: 9
roles:
  - name: trainer
    kind: fsdp
    config: {seed: 1, dtype: bfloat16}
  - name: reference
    kind: vllm
    config:
      gpu_memory_utilization: 0.5
      max_num_seqs: 8
      enable_prefix_caching: false
  - name: rollout
    kind: vllm
    config:
      model: org/policy
      seed: 3
      most_requests: 10
      gpu_memory_utilization: 0.9
      max_num_seqs: 64
      logprobs_mode: raw_logprobs
      enable_prefix_caching: true
"""
FLAT = """\
engine: vllm
seed: 7
learning_rate: 1e-6
warmup: 10
epochs: 1
batch: 4
temperature: 0.7
gpu_memory_utilization: 0.9
max_model_len: 2048
enforce_eager: true
"""
TOML = """\
[generation.vllm]
tensor-parallel-size = 2
max-num-seqs = 16
enforce-eager = true
"""


def test_every_mapping_of_engine_arguments_is_an_engine_named_by_its_path() -> None:
    reference, rollout = read_all(DIALECT, ROLES, "0.18.1")
    assert rollout.model is not None and rollout.model.value == "org/policy"
    assert (rollout.engine["max_num_seqs"].value, rollout.engine["seed"].value) == (64, 3)
    assert reference.engine["enable_prefix_caching"].value is False
    assert any(one.startswith("roles[2].config (rollout):") for one in rollout.not_seen)
    assert any(one.startswith("roles[1].config (reference):") for one in reference.not_seen)


def test_what_is_not_written_may_be_added_by_the_program_and_is_no_default() -> None:
    _, rollout = read_all(DIALECT, ROLES, "0.18.1")
    setting = rollout.engine.get("enforce_eager")
    assert setting is not None and isinstance(setting.value, Unknown) and "roles[2].config" in setting.value.reason
    assert isinstance(rollout.sampling["min_p"].value, Unknown)
    assert rollout.trainer == {}


def test_an_argument_that_a_release_does_not_have_is_a_setting_all_the_same() -> None:
    _, rollout = read_all(DIALECT, ROLES, "0.8.5")
    assert rollout.engine["logprobs_mode"].value == "raw_logprobs"


def test_a_name_that_programs_have_too_is_the_programs_own_before_vllm_has_it() -> None:
    text = "vllm:\n  max_num_seqs: 4\n  max_model_len: 8\n  gpu_memory_utilization: 0.8\n  log_level: info\n"
    before, after = read_one(DIALECT, text, "0.18.1"), read_one(DIALECT, text, "0.31.0")
    assert "log_level" not in before.engine and before.options["vllm.log_level"].value == "info"
    assert after.engine["log_level"].value == "info"


def test_the_nearest_sampling_is_the_rollouts_and_not_the_references() -> None:
    reference, rollout = read_all(DIALECT, ROLES, "0.18.1")
    assert (rollout.sampling["temperature"].value, rollout.sampling["top_k"].value) == (0.6, 20)
    assert isinstance(reference.sampling, Elsewhere)


def test_keys_that_no_vllm_has_and_the_objective_are_listed_as_the_programs_own() -> None:
    _, rollout = read_all(DIALECT, ROLES, "0.18.1")
    assert rollout.options["roles[2].config.most_requests"].value == 10
    assert rollout.options["loss.beta"].value == 0.001
    assert any(name.endswith("drop_short") for name in rollout.options)


def test_among_many_keys_of_others_only_names_that_nobody_else_has_are_vllms() -> None:
    config = read_one(DIALECT, FLAT, "0.18.1")
    assert set(config.engine) == {"gpu_memory_utilization", "max_model_len", "enforce_eager"}
    assert config.sampling["temperature"].value == 0.7


def test_a_written_argument_is_edited_in_place_and_none_is_added() -> None:
    config = read_one(DIALECT, TOML, "0.18.1", "run.toml")
    assert "max-num-seqs = 32" in rewritten(config, TOML, "max_num_seqs", 32)
    assert config.write("async_scheduling", False) is None


@pytest.mark.parametrize(
    "text",
    [
        FLAT.replace("vllm", "sglang"),
        FLAT.replace("engine: vllm", "# vllm\nengine: mine"),
        f"services: {{web: {{}}}}\n{FLAT}",
        f"apiVersion: v1\n{FLAT}",
        "vllm:\n  gpu_memory_utilization: share of memory\n  max_num_seqs: sequences\n  max_model_len: length\n",
        "vllm:\n  gpu_memory_utilization: {type: float}\n  max_num_seqs: {type: int}\n  max_model_len: {type: int}\n",
        "generation:\n  vllm_cfg:\n    gpu_memory_utilization: 0.5\n    max_model_len: 9\n    enforce_eager: true\n",
        "vllm: [gpu_memory_utilization, max_num_seqs, max_model_len\n",
        "vllm:\n  gpu_memory_utilization: 0.5\n  max_model_len: 9\n  batch_size: 3\n",
    ],
)
def test_other_engines_manifests_descriptions_and_frameworks_are_not_read(text: str) -> None:
    assert not DIALECT.recognise(source_of(text))


def test_a_file_that_another_dialect_reads_is_left_to_it() -> None:
    served = source_of("gpu_memory_utilization: 0.9\nmax_num_seqs: 8\nmax_model_len: 99\nserved_model_name: vllm-one\n")
    assert DIALECT.recognise(served)
    recognised, bugs = recognise(served, known_dialects())
    assert [one.name for one in recognised] == ["vllm-config-file"] and bugs == ()


def test_a_file_that_repeats_an_engine_many_times_over_is_read_up_to_a_limit() -> None:
    one = "  - {kind: vllm, gpu_memory_utilization: 0.5, max_num_seqs: 2, max_model_len: 3}\n"
    source = source_of(f"roles:\n{one * 200}")
    assert DIALECT.recognise(source)
    assert 1 < len(DIALECT.read(source, Version("0.18.1"))) <= 20
