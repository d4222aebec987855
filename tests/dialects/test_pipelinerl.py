from pathlib import Path

import pytest
from packaging.version import Version
from reading import lost_names, put, read_file, read_one, rewritten, source_of

from rlaudit.audit.audit import audit_of
from rlaudit.configs.hydra_defaults import composed
from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.inspection.setting_rows import setting_rows
from rlaudit.settings.rollout_config import Loss, Origin
from rlaudit.unknown import Unknown
from rlaudit.vllm.machine import Machine

DIALECT = declared()["pipelinerl"]

V0_FILE = """\
seed: 7
fp32_lm_head: false
model_path: org/small-model
actor:
  llm_max_rollouts: 48
llm:
  parameters:
    temperature: 0.8
    max_tokens: 512
test_llm:
  parameters:
    top_p: 0.9
finetune:
  rl:
    temperature: ${...llm.parameters.temperature}
vllm_config:
  use_v1: false
  quantization: null
  vllm_kwargs:
    dtype: bfloat16
    max-num-seqs: ${actor.llm_max_rollouts}
    enable-chunked-prefill: ""   # a bare flag
    max_model_len: 4096
    num-scheduler-steps: 1
    disable-log-requests: ""
"""

V1_FILE = """\
seed: 7
model_path: org/small-model
llm:
  parameters:
    temperature: 1.0
vllm_config:
  vllm_kwargs:
    logprobs-mode: processed_logprobs
    enable-prefix-caching: false
"""


def test_a_file_with_use_v1_false_runs_the_v0_engine_under_an_old_vllm() -> None:
    config = read_one(DIALECT, V0_FILE, "0.8.5")
    assert config.environment["VLLM_USE_V1"].value == "0"
    assert config.environment["VLLM_USE_V1"].origin is Origin.FRAMEWORK
    assert config.engine["num_scheduler_steps"].value == 1
    assert config.facts.pause_mode == "keep"
    assert config.facts.pause_arguments == []
    assert config.lost == ()


def test_the_same_file_under_a_vllm_without_v0_gives_what_the_v1_server_would_get() -> None:
    config = read_one(DIALECT, V0_FILE, "0.18.1")
    assert "VLLM_USE_V1" not in config.environment
    assert lost_names(config) == {"num_scheduler_steps", "disable_log_requests", "use_v1"}
    assert {lost.loss for lost in config.lost} == {Loss.NOT_PASSED, Loss.OVERRULED}
    assert config.facts.pause_arguments == ["mode", "clear_cache"]
    assert config.facts.pause_clears_cache is False
    for open_to_vllm in ("logprobs_mode", "enable_prefix_caching", "async_scheduling"):
        assert open_to_vllm not in config.engine


def test_dashes_bare_flags_and_interpolations_become_engine_arguments_with_their_places() -> None:
    config = read_one(DIALECT, V0_FILE, "0.8.5")
    assert config.engine["max_num_seqs"].value == 48
    flag = config.engine["enable_chunked_prefill"]
    assert (flag.value, flag.written) == (True, "")
    assert flag.place is not None and (flag.place.line, flag.place.column) == (22, 29)
    assert config.engine["seed"].value == 7 and config.engine["seed"].origin is Origin.FRAMEWORK
    assert config.model is not None and config.model.value == "org/small-model"


def test_evaluation_sampling_is_not_the_rollouts() -> None:
    config = read_one(DIALECT, V0_FILE, "0.8.5")
    assert config.sampling["temperature"].value == 0.8
    assert "top_p" not in config.sampling


def test_the_head_is_bf16_where_the_knob_is_off_and_fp32_where_there_is_no_knob_any_more() -> None:
    before = read_one(DIALECT, V0_FILE, "0.18.1")
    assert before.engine["quantization"].value is None
    assert before.facts.head_dtype == "bfloat16"
    assert "rollout_head_dtype" not in before.trainer
    after = read_one(DIALECT, V1_FILE, "0.18.1")
    assert after.engine["quantization"].value == "bf16_last_layer_fp32"
    assert (after.facts.head_dtype, after.facts.rollout_head_dtype) == ("float32", "float32")
    assert after.environment["PIPELINERL_FP32_LAYER_PREFIX"].value == "lm_head"


def test_the_knob_overrules_another_quantization() -> None:
    text = V0_FILE.replace("fp32_lm_head: false", "fp32_lm_head: true").replace(
        "quantization: null", "quantization: fp8"
    )
    config = read_one(DIALECT, text, "0.18.1")
    assert config.engine["quantization"].value == "bf16_last_layer_fp32"
    assert "quantization" in lost_names(config)


def test_one_sided_quantization_leaves_the_trainers_head_in_bf16() -> None:
    text = V0_FILE.replace("quantization: null", "quantization: bf16_last_layer_fp32")
    config = read_one(DIALECT, text, "0.18.1")
    assert (config.facts.head_dtype, config.facts.rollout_head_dtype) == ("bfloat16", "float32")


def test_use_v1_true_leaves_it_open_whether_the_code_sets_the_parity_defaults() -> None:
    config = read_one(DIALECT, V0_FILE.replace("use_v1: false", "use_v1: true"), "0.18.1")
    assert isinstance(config.engine["enable_prefix_caching"].value, Unknown)
    assert isinstance(config.engine["logprobs_mode"].value, Unknown)


def test_the_trainer_divides_by_the_rollouts_temperature_and_says_so_when_it_does_not() -> None:
    assert read_one(DIALECT, V0_FILE, "0.18.1").facts.divides_by_temperature is True
    other = V0_FILE.replace("${...llm.parameters.temperature}", "1.0")
    fact = read_one(DIALECT, other, "0.18.1").trainer["divides_by_temperature"].value
    assert isinstance(fact, Unknown) and "0.8" in fact.reason


def test_weights_are_updated_in_flight_unless_they_are_not_sent() -> None:
    assert read_one(DIALECT, V1_FILE, "0.18.1").facts.weight_updates == "in flight"
    silent = V1_FILE + "finetune:\n  send_weight_updates: false\n"
    assert read_one(DIALECT, silent, "0.18.1").facts.weight_updates == "none"


def inheriting(tmp_path: Path) -> Path:
    (tmp_path / "finetune").mkdir()
    (tmp_path / "finetune" / "base.yaml").write_text(
        "load_as_bf16: false\nrl:\n  temperature: ${...llm.parameters.temperature}\n"
    )
    (tmp_path / "base.yaml").write_text("defaults:\n  - finetune: base\n  - _self_\n" + V1_FILE)
    child = tmp_path / "task.yaml"
    child.write_text(
        "defaults:\n  - base\n  - _self_\nllm:\n  parameters:\n    temperature: 0.6\n"
        "vllm_config:\n  vllm_kwargs:\n    max_model_len: 2048\n"
    )
    return child


def test_hydra_defaults_beside_the_file_are_read_and_name_their_own_place(tmp_path: Path) -> None:
    config = read_file(DIALECT, inheriting(tmp_path), "0.18.1")
    assert config.engine["max_model_len"].value == 2048
    mode = config.engine["logprobs_mode"]
    assert mode.value == "processed_logprobs"
    assert mode.place is not None and Path(mode.place.path).name == "base.yaml"
    assert config.sampling["temperature"].value == 0.6
    assert config.facts.divides_by_temperature is True
    assert config.facts.dtype == "float32"
    assert {Path(part).name for part in config.parts} == {"base.yaml"}
    assert len(config.parts) == 2


def test_without_its_base_config_what_the_base_says_is_unknown_and_named(tmp_path: Path) -> None:
    child = inheriting(tmp_path)
    (tmp_path / "base.yaml").unlink()
    config = read_file(DIALECT, child, "0.18.1")
    for name in ("logprobs_mode", "enable_prefix_caching", "async_scheduling", "quantization"):
        assert isinstance(config.engine[name].value, Unknown), name
    assert any("base.yaml" in sentence for sentence in config.not_seen)


def test_a_config_that_inherits_itself_ends(tmp_path: Path) -> None:
    child = tmp_path / "loop.yaml"
    child.write_text("defaults:\n  - loop\nvllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n")
    assert read_file(DIALECT, child, "0.18.1").engine["dtype"].value == "bfloat16"


def test_settings_are_written_with_dashes_after_the_last_key() -> None:
    config = read_one(DIALECT, V0_FILE, "0.18.1")
    once = rewritten(config, V0_FILE, "logprobs_mode", "processed_logprobs")
    assert once.endswith('    disable-log-requests: ""\n    logprobs-mode: processed_logprobs\n')
    again = read_one(DIALECT, once, "0.18.1")
    assert again.engine["logprobs_mode"].value == "processed_logprobs"
    assert again.write("logprobs_mode", "processed_logprobs") == ()


def test_a_written_value_is_replaced_in_place() -> None:
    config = read_one(DIALECT, V1_FILE, "0.18.1")
    assert rewritten(config, V1_FILE, "enable_prefix_caching", True) == V1_FILE.replace(
        "enable-prefix-caching: false", "enable-prefix-caching: true"
    )


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "vllm_config: 3", "vllm_config:\n  vllm_kwargs: [a]\n", "vllm_config: {vllm_kwargs: !x {"]
)
def test_what_is_no_pipelinerl_config_is_not_recognised(text: str) -> None:
    assert not DIALECT.recognise(source_of(text))


@pytest.mark.parametrize(("middle", "outer", "wanted"), [
    (None, "ppo", 0.7), ("ppo", None, 0.7), ("ppo", "plain", 0.2), (None, None, 0.2),
])  # fmt: skip
def test_an_override_of_a_group_replaces_the_choice_of_the_config_that_is_inherited(
    tmp_path: Path, middle: str | None, outer: str | None, wanted: float
) -> None:
    def listed(base: str, chosen: str | None) -> str:
        return f"defaults:\n  - {base}\n" + (f"  - override finetune: {chosen}\n" if chosen else "") + "  - _self_\n"

    (tmp_path / "finetune").mkdir()
    (tmp_path / "finetune" / "plain.yaml").write_text("rl: {temperature: 0.2}\n")
    (tmp_path / "finetune" / "ppo.yaml").write_text("rl: {temperature: 0.7}\n")
    engine = "vllm_config:\n  vllm_kwargs:\n    dtype: bfloat16\n"
    (tmp_path / "base.yaml").write_text("defaults:\n  - finetune: plain\n  - _self_\n" + engine)
    (tmp_path / "middle.yaml").write_text(listed("base", middle))
    (tmp_path / "run.yaml").write_text(listed("middle", outer))
    config = composed(Source(str(tmp_path / "run.yaml"), (tmp_path / "run.yaml").read_text()))
    found = config.root.get("finetune", "rl", "temperature") if config is not None else None
    assert found is not None and found.value == wanted


AS_TEXT = 'for k, v in kwargs.items():\n    cmd.append(f"--{k}")\n    cmd.append(str(v))\n'
AS_SWITCH = AS_TEXT.replace("    cmd", '    if isinstance(v, bool):\n        cmd.append(f"--no-{k}")\n    cmd', 1)


@pytest.mark.parametrize(("launch", "off", "arrives"), [
    (AS_TEXT, 'no-enable-prefix-caching: ""', Unknown), (AS_SWITCH, "enable-prefix-caching: false", bool),
])  # fmt: skip
def test_a_copy_that_passes_a_false_as_text_gets_a_bare_flag_instead(
    tmp_path: Path, launch: str, off: str, arrives: type
) -> None:
    put(tmp_path, {"pipelinerl/__init__.py": "", "pipelinerl/launch.py": launch})
    path = tmp_path / "run.yaml"
    without = V1_FILE.replace("    enable-prefix-caching: false\n", "")
    path.write_text(without)
    fixed = rewritten(read_file(DIALECT, path, "0.18.1"), without, "enable_prefix_caching", False)
    assert fixed == f"{without}    {off}\n"
    path.write_text(fixed)
    assert read_file(DIALECT, path, "0.18.1").engine["enable_prefix_caching"].value is False
    path.write_text(V1_FILE)
    assert isinstance(read_file(DIALECT, path, "0.18.1").engine["enable_prefix_caching"].value, arrives)


def test_a_file_of_the_older_generation_without_its_copy_gets_a_false_that_arrives_in_both() -> None:
    fixed = rewritten(read_one(DIALECT, V0_FILE, "0.18.1"), V0_FILE, "async_scheduling", False)
    assert fixed == f'{V0_FILE}    no-async-scheduling: ""\n'
    assert read_one(DIALECT, fixed, "0.18.1").engine["async_scheduling"].value is False
    assert read_one(DIALECT, fixed, "0.18.1").write("async_scheduling", True) is None


def test_an_option_of_the_server_is_one_in_releases_that_declare_it_as_a_flag_alone() -> None:
    text = V1_FILE + '    return-tokens-as-token-ids: ""\n'
    versions = Version("0.8.5"), Version("0.18.1")
    before, after = (read_one(DIALECT, text, str(version)) for version in versions)
    rows = setting_rows(audit_of(before, after, versions, Machine()), 0)
    (row,) = [row for row in rows if row.name == "return_tokens_as_token_ids"]
    assert (row.effective_from, row.effective_to) == (True, True)
