from pathlib import Path

import pytest
from packaging.version import Version
from reading import lost_names, put, read_all, read_file, read_one, rewritten, source_of
from verl_samples import SCRIPT, SYNC, YAML, in_script

from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, Origin
from rlaudit.unknown import Unknown

DIALECT = declared()["verl"]


def test_a_written_false_is_dropped_by_the_releases_for_vllm_0_11() -> None:
    config = read_one(DIALECT, YAML, "0.11.2")
    setting = config.engine["enable_prefix_caching"]
    assert setting.value is None and setting.written is False
    (lost,) = config.lost
    assert (lost.name, lost.loss, lost.place.line) == ("enable_prefix_caching", Loss.FALSE_DROPPED, 17)
    assert "0.9.1" in lost.reason


def test_a_written_false_is_unknown_where_the_release_cannot_be_told() -> None:
    config = read_one(DIALECT, YAML, "0.24.0")
    value = config.engine["enable_prefix_caching"].value
    assert isinstance(value, Unknown) and "v0.6.0 to v0.9.0" in value.reason
    assert lost_names(config) == {"enable_prefix_caching"}


def test_a_dropped_false_does_no_harm_where_false_is_the_default() -> None:
    config = read_one(DIALECT, YAML, "0.11.2")
    assert config.engine["enforce_eager"].value is False
    assert "enforce_eager" not in lost_names(config)


def test_a_written_false_arrives_at_the_in_process_engine() -> None:
    config = read_one(DIALECT, YAML.replace("mode: async", "mode: sync"), "0.8.5")
    assert config.engine["enable_prefix_caching"].value is False
    assert config.offline is True
    assert config.lost == ()


def test_logprobs_mode_is_processed_from_v0_7_raw_before_and_unknown_between() -> None:
    mode = read_one(DIALECT, YAML + "defaults:\n  - ppo_trainer\n", "0.12.0").engine["logprobs_mode"]
    assert (mode.value, mode.origin) == ("processed_logprobs", Origin.FRAMEWORK)
    between = read_one(DIALECT, SCRIPT, "0.10.2", "run.sh").engine["logprobs_mode"]
    assert isinstance(between.value, Unknown)
    older = read_one(DIALECT, in_script("actor_rollout_ref.rollout.mode=sync"), "0.10.2", "run.sh")
    assert "logprobs_mode" not in older.engine


def test_a_key_that_only_one_release_has_tells_the_release() -> None:
    newer = in_script("algorithm.rollout_correction.rollout_is=token", "actor_rollout_ref.rollout.mode=async")
    config = read_one(DIALECT, newer, "0.10.2", "run.sh")
    assert config.engine["enable_prefix_caching"].value is None
    assert config.facts.importance_sampling_correction is True
    assert config.facts.importance_sampling_mode == "token"


@pytest.mark.parametrize(
    ("key", "on"),
    [
        ("algorithm.rollout_correction.rollout_is=null", False),
        ("algorithm.rollout_correction.rollout_is=sequence", True),
        ("actor_rollout_ref.actor.tis_imp_ratio_cap=2", True),
        ("actor_rollout_ref.actor.tis_imp_ratio_cap=-1", False),
        ("algorithm.use_kl_in_reward=False", False),
    ],
)
def test_every_spelling_of_the_correction_is_read(key: str, on: bool) -> None:
    assert read_one(DIALECT, in_script(key), "0.8.5", "run.sh").facts.importance_sampling_correction is on


def test_overrides_of_a_script_are_read_with_variables_and_places() -> None:
    config = read_one(DIALECT, SCRIPT, "0.11.2", "run.sh")
    assert config.sampling["temperature"].value == 0.7
    place = config.sampling["temperature"].place
    assert place is not None and place.line == 6
    assert place.setting == "actor_rollout_ref.rollout.temperature"
    assert SCRIPT[place.start : place.end] == "0.7"
    assert config.engine["tensor_parallel_size"].value == 2
    assert config.engine["max_logprobs"].value == 5
    assert config.facts.replicas == 4


def test_a_value_from_outside_is_unknown() -> None:
    config = read_one(DIALECT, SCRIPT.replace("=0.7", "=$TEMPERATURE"), "0.11.2", "run.sh")
    assert isinstance(config.sampling["temperature"].value, Unknown)
    generation = config.engine["override_generation_config"].value
    assert isinstance(generation, Unknown)


def test_a_removed_override_leaves_the_default() -> None:
    config = read_one(DIALECT, in_script("~actor_rollout_ref.rollout.temperature"), "0.11.2", "run.sh")
    assert config.sampling["temperature"].origin is Origin.FRAMEWORK


def test_a_script_inside_a_job_description_keeps_the_files_lines() -> None:
    job = "name: job\nrun: |\n" + "".join(f"  {line}\n" for line in SCRIPT.splitlines())
    config = read_one(DIALECT, job, "0.11.2")
    place = config.sampling["temperature"].place
    assert place is not None and (place.line, job[place.start : place.end]) == (8, "0.7")


def test_validation_sampling_is_not_the_rollouts() -> None:
    text = YAML.replace("    temperature: 0.7\n", "    val_kwargs:\n      temperature: 0\n      top_p: 0.5\n")
    config = read_one(DIALECT, text, "0.11.2")
    assert (config.sampling["temperature"].value, config.sampling["top_p"].value) == (1.0, 1.0)


def test_engine_kwargs_win_over_fields_and_may_spell_a_negation() -> None:
    text = YAML.replace("max_logprobs: 5", "no_enable_prefix_caching: true\n        temperature_x: null")
    config = read_one(DIALECT, text, "0.11.2")
    assert config.engine["enable_prefix_caching"].value is False
    assert "temperature_x" not in config.engine


def test_the_models_generation_config_is_overridden_with_the_rollouts_sampling() -> None:
    value = read_one(DIALECT, YAML, "0.11.2").engine["override_generation_config"].value
    assert value["temperature"] == 0.7 and value["repetition_penalty"] == 1.0 and value["max_new_tokens"] == 256


def test_another_engine_gives_no_config() -> None:
    assert read_all(DIALECT, YAML.replace("name: vllm", "name: sglang"), "0.11.2") == ()
    assert len(read_all(DIALECT, YAML.replace("name: vllm", "name: vllm_of_ours"), "0.11.2")) == 1


def test_trainer_facts_follow_the_config() -> None:
    config = read_one(DIALECT, YAML, "0.11.2")
    assert config.facts.divides_by_temperature is True
    assert config.facts.logs_mismatch is True
    assert config.facts.weight_updates == "between rollouts"
    assert config.facts.resets_prefix_cache is True
    assert config.facts.replicas == 4
    bypass = YAML + "algorithm:\n  rollout_correction:\n    bypass_mode: true\n"
    assert read_one(DIALECT, bypass, "0.11.2").facts.recomputes_old_logprobs is False


def test_fully_asynchronous_training_aborts_requests_in_flight() -> None:
    config = read_one(DIALECT, YAML + "async_training:\n  partial_rollout: true\n", "0.12.0")
    assert config.facts.weight_updates == "in flight"
    assert config.facts.pause_mode == "abort"
    assert config.facts.pause_arguments == ["wait_for_inflight_requests", "clear_cache"]


def test_full_determinism_switches_batch_invariance_on() -> None:
    config = read_one(DIALECT, YAML.replace("mode: async", "full_determinism: true"), "0.24.0")
    assert config.environment["VLLM_BATCH_INVARIANT"].value == "1"


def test_a_base_config_beside_the_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "ppo_trainer.yaml").write_text(YAML)
    child = tmp_path / "mine.yaml"
    child.write_text("defaults:\n  - ppo_trainer\n  - _self_\nactor_rollout_ref:\n  rollout:\n    top_p: 0.9\n")
    config = read_file(DIALECT, child, "0.12.0")
    assert (config.sampling["temperature"].value, config.sampling["top_p"].value) == (0.7, 0.9)


def test_verls_own_rollout_group_is_recognised() -> None:
    text = "_target_: verl.workers.config.RolloutConfig\nname: ???\ntemperature: 1.0\n"
    assert read_one(DIALECT, text, "0.12.0").sampling["temperature"].value == 1.0


def test_false_is_written_so_that_every_release_hands_it_on() -> None:
    config = read_one(DIALECT, YAML, "0.11.2")
    text = rewritten(config, YAML, "enable_prefix_caching", False)
    assert text == YAML + "        no_enable_prefix_caching: true\n"
    assert read_one(DIALECT, text, "0.11.2").engine["enable_prefix_caching"].value is False


def test_other_values_are_written_to_the_field() -> None:
    config = read_one(DIALECT, YAML, "0.11.2")
    text = rewritten(config, YAML, "logprobs_mode", "processed_logprobs")
    assert read_one(DIALECT, text, "0.11.2").engine["logprobs_mode"].value == "processed_logprobs"


def test_an_override_is_replaced_in_place_or_added_on_a_line_of_its_own() -> None:
    config = read_one(DIALECT, SCRIPT, "0.11.2", "run.sh")
    assert "tensor_model_parallel_size=$TP" in SCRIPT and config.write("tensor_parallel_size", 4) is None
    assert rewritten(config, SCRIPT, "max_logprobs", 20) == SCRIPT.replace("max_logprobs=5", "max_logprobs=20")
    added = rewritten(config, SCRIPT, "enable_prefix_caching", False)
    line = " \\\n    ++actor_rollout_ref.rollout.engine_kwargs.vllm.no_enable_prefix_caching=true\n"
    assert added == SCRIPT.rstrip("\n") + line
    assert read_one(DIALECT, added, "0.11.2", "run.sh").engine["enable_prefix_caching"].value is False


@pytest.mark.parametrize("text", ["actor_rollout_ref: 3\n", "# actor_rollout_ref.rollout.x=1\n", "a: [\n"])
def test_what_sets_no_rollout_is_not_recognised(text: str) -> None:
    assert not DIALECT.recognise(source_of(text))
    assert not DIALECT.recognise(source_of(text, "run.sh"))


def test_a_null_is_no_flag_so_that_vllm_decides() -> None:
    written = YAML.replace("mode: async", "logprobs_mode: null").replace("enforce_eager: false", "enforce_eager: null")
    engine = read_one(DIALECT, written + "defaults: [ppo_trainer]\n", "0.24.0").engine
    assert "logprobs_mode" not in engine and "enforce_eager" not in engine


def test_switches_elsewhere_turn_engine_arguments_on() -> None:
    text = YAML.replace("    path: org/policy\n", "    path: org/policy\n    lora_rank: 16\n")
    text = text.replace("    mode: async\n", "    mode: async\n    enable_rollout_routing_replay: true\n")
    engine = read_one(DIALECT, text, "0.24.0").engine
    assert engine["enable_lora"].value is True
    assert engine["enable_return_routed_experts"].value is True


def test_a_flag_is_written_before_a_backslash_that_ends_the_script() -> None:
    script = SCRIPT.replace("    trainer.nnodes=1 trainer.n_gpus_per_node=8\n", "\\")
    config = read_one(DIALECT, script, "0.11.2", "run.sh")
    again = read_one(DIALECT, rewritten(config, script, "async_scheduling", False), "0.11.2", "run.sh")
    assert again.engine["async_scheduling"].value is False


def test_the_server_before_v0_6_reads_no_engine_kwargs() -> None:
    script = in_script("actor_rollout_ref.rollout.mode=async", "actor_rollout_ref.actor.tis_imp_ratio_cap=2")
    config = read_one(DIALECT, script, "0.8.5", "run.sh")
    assert lost_names(config) == {"max_logprobs"} and config.lost[0].loss is Loss.NOT_PASSED
    assert config.write("async_scheduling", False) is None
    assert config.write("enforce_eager", False) is not None


def test_the_actor_logs_the_mismatch_where_old_logprobs_are_the_rollouts() -> None:
    bypass = YAML + "algorithm:\n  rollout_correction:\n    bypass_mode: true\n"
    assert read_one(DIALECT, bypass, "0.11.2").facts.logs_mismatch is True
    direct = YAML.replace("  actor:\n", "  actor:\n    use_rollout_log_probs: true\n")
    assert isinstance(read_one(DIALECT, direct, "0.24.0").trainer["logs_mismatch"].value, Unknown)


def test_parameters_that_no_request_names_are_neutral_and_not_the_models() -> None:
    sampling = read_one(DIALECT, YAML, "0.24.0").sampling
    assert (sampling["min_p"].value, sampling["presence_penalty"].value) == (0.0, 0.0)
    written = read_one(DIALECT, SYNC.replace("temperature: 0.7", "min_p: 0.1"), "0.11.0")
    assert written.sampling["min_p"].value == 0.1


def test_the_agent_loop_of_v0_7_sends_a_repetition_penalty_of_its_own() -> None:
    written = YAML.replace("temperature: 0.7", "repetition_penalty: 1.1")
    assert read_one(DIALECT, written, "0.24.0").sampling["repetition_penalty"].value == 1.0
    in_process = SYNC.replace("temperature: 0.7", "repetition_penalty: 1.1")
    assert read_one(DIALECT, in_process, "0.11.0").sampling["repetition_penalty"].value == 1.1


def test_overrides_in_an_array_are_read_with_arithmetic_and_what_is_not_told_stays_unknown() -> None:
    text = (
        "P=$((1024 * 2))\nARGS=(\n  actor_rollout_ref.rollout.name=vllm\n"
        "  actor_rollout_ref.rollout.max_num_batched_tokens=$((P + 8192))\n"
        "  actor_rollout_ref.rollout.temperature=$HEAT\n)\n"
        'python -m verl.trainer.main_ppo "${ARGS[@]}" "$@"\n'
    )
    config = read_one(DIALECT, text, "0.18.1", "run.sh")
    batched, heat = config.engine["max_num_batched_tokens"], config.sampling["temperature"]
    assert batched.value == 10240 and batched.place is not None and batched.place.line == 4
    assert isinstance(heat.value, Unknown) and heat.place is not None and heat.place.line == 5
    assert '"$@" may hold further overrides' in config.not_seen


def test_an_engine_whose_name_is_not_told_is_said_to_be_read_as_vllms() -> None:
    text = "python -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=$ENGINE actor_rollout_ref.rollout.n=2\n"
    config = read_one(DIALECT, text, "0.18.1", "run.sh")
    assert "the rollout engine: $ENGINE is set nowhere in this file; it is read as vLLM's" in config.not_seen


def test_a_dictionary_of_python_is_read_and_written() -> None:
    text = 'CONFIG = {\n    "actor_rollout_ref": {"rollout": {"mode": "async", "temperature": 0.7}},\n}\n'
    config = read_one(DIALECT, text, "0.12.0", "train.py")
    assert config.sampling["temperature"].value == 0.7
    assert config.engine["logprobs_mode"].value == "processed_logprobs"
    assert '"temperature": 0.7, "max_num_seqs": 64}' in rewritten(config, text, "max_num_seqs", 64)


def test_engine_kwargs_of_a_dictionary_that_takes_more_leave_the_rest_open() -> None:
    text = (
        "CONFIG = {'actor_rollout_ref': {'rollout': {'mode': 'async', 'n': 8,\n"
        "    'engine_kwargs': {'vllm': {'seed': 4, **more()}}}}}\n"
    )
    config = read_one(DIALECT, text, "0.18.1", "train.py")
    assert "**" not in config.engine and any("further keys" in one for one in config.not_seen)
    assert isinstance(config.engine.get("async_scheduling").value, Unknown)


def test_a_program_and_an_engine_class_on_top_of_verl_are_said() -> None:
    text = "python -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=2\n"
    own = text.replace("verl.trainer.main_ppo", "ours.trainer.main").replace("name=vllm", "name=vllm_tools")
    said, plain = (read_one(DIALECT, one, "0.18.1", "run.sh").not_seen for one in (own, text))
    assert "what ours.trainer.main sets by itself, a program on top of verl" in said
    assert "the engine class of rollout.name vllm_tools, which no release of verl has" in said
    assert not any("on top of" in one or "engine class" in one for one in plain)


def test_an_edit_that_verl_itself_refuses_is_none() -> None:
    def writes(batch: str) -> bool:
        lengths = "    response_length: 4096\n    prompt_length: 4096\n"
        text = f"actor_rollout_ref:\n  rollout:\n    name: vllm\n    mode: sync\n{batch}{lengths}"
        return read_one(DIALECT, text, "0.8.5").write("enable_chunked_prefill", True) is not None

    assert writes("    max_num_batched_tokens: 8192\n    max_model_len: 8192\n")
    assert not writes("    max_num_batched_tokens: 4096\n    max_model_len: 8192\n")


def test_variables_that_the_program_gives_its_cluster_reach_the_engine(tmp_path: Path) -> None:
    files = {
        ".git/HEAD": "",
        "own/__init__.py": "",
        "own/main.py": "import ray\nray.init(runtime_env={'env_vars': {'VLLM_USE_V1': '1', 'HF_HOME': '/a'}})\n",
        "run.sh": "python -m own.main actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8\n",
    }
    put(tmp_path, files)
    (config,) = DIALECT.read(Source(str(tmp_path / "run.sh"), files["run.sh"]), Version("0.8.5"))
    assert config.environment["VLLM_USE_V1"].value == "1" and "HF_HOME" not in config.environment
