from pathlib import Path

import pytest
from reading import lost_names, read_all, read_file, read_one, rewritten, source_of

from rlaudit.configs.source import Source
from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import Loss, Origin
from rlaudit.unknown import Unknown

DIALECT = declared()["nemo_rl"]

ALONE = """\
grpo:
  async_grpo:
    enabled: false
loss_fn:
  use_importance_sampling_correction: true
  truncated_importance_sampling_type: icepop
cluster:
  gpus_per_node: 8
  num_nodes: 1
policy:
  model_name: org/policy
  precision: bfloat16
  generation:
    backend: vllm
    max_new_tokens: 128
    temperature: 0.9
    top_p: 0.95
    top_k: null
    val_temperature: 0.1
    vllm_cfg:
      async_engine: false
      precision: ${policy.precision}
      tensor_parallel_size: 2
      pipeline_parallel_size: 1
      enforce_eager: true
      enable_chunked_prefill: false
    vllm_kwargs:
      compilation_config:
        backend: eager
"""


def test_fields_and_passthrough_become_engine_arguments() -> None:
    config = read_one(DIALECT, ALONE, "0.25.1")
    assert config.engine["dtype"].value == "bfloat16"
    assert config.engine["enforce_eager"].value is True
    assert config.engine["compilation_config"].value == {"backend": "eager"}
    assert config.offline is True


def test_prefix_caching_that_is_not_written_is_on_by_the_frameworks_code() -> None:
    setting = read_one(DIALECT, ALONE, "0.25.1").engine["enable_prefix_caching"]
    assert (setting.value, setting.origin) == (True, Origin.FRAMEWORK)
    written = ALONE.replace("enforce_eager: true", "enable_prefix_caching: false")
    assert read_one(DIALECT, written, "0.25.1").engine["enable_prefix_caching"].value is False


def test_a_field_that_nobody_reads_is_lost() -> None:
    (lost,) = read_one(DIALECT, ALONE, "0.25.1").lost
    assert (lost.name, lost.loss) == ("enable_chunked_prefill", Loss.UNKNOWN_KEY)


def test_logprobs_mode_without_a_line_is_unknown_up_to_the_release_that_read_it_from_the_file() -> None:
    assert isinstance(read_one(DIALECT, ALONE, "0.25.1").engine["logprobs_mode"].value, Unknown)
    assert "logprobs_mode" not in read_one(DIALECT, ALONE, "0.28.0").engine


def test_sampling_is_the_rollouts_and_complete() -> None:
    sampling = read_one(DIALECT, ALONE, "0.25.1").sampling
    assert (sampling["temperature"].value, sampling["top_p"].value, sampling["top_k"].value) == (0.9, 0.95, -1)
    assert sampling["repetition_penalty"].value == 1.0
    assert sampling["max_tokens"].value == 128


def test_trainer_facts_follow_the_config() -> None:
    config = read_one(DIALECT, ALONE, "0.25.1")
    assert config.facts.replays_filters is True
    assert config.facts.importance_sampling_mode == "icepop"
    assert config.facts.weight_updates == "between rollouts"
    assert config.facts.resets_prefix_cache is True
    assert config.facts.replicas == 4
    assert config.facts.seeds_replicas is True


@pytest.mark.parametrize(
    ("nodes", "own", "engines"),
    [
        ("1", "gpus_per_node: 4", 2),
        ("1", "{gpus_per_node: 6, num_nodes: 1}", 3),
        ("1", "{gpus_per_node: null, num_nodes: null}", None),
        ("4", "{gpus_per_node: 8, num_nodes: 2}", 8),
        ("4", "gpus_per_node: 8", None),
    ],
)
def test_gpus_that_are_set_aside_for_generation_are_counted(nodes: str, own: str, engines: int | None) -> None:
    apart = f"colocated:\n      enabled: false\n      resources:\n        {own}"
    text = ALONE.replace("num_nodes: 1", f"num_nodes: {nodes}").replace(
        "max_new_tokens: 128", f"{apart}\n    max_new_tokens: 128"
    )
    if own.startswith("{"):
        text = text.replace(f"resources:\n        {own}", f"resources: {own}")
    config = read_one(DIALECT, text, "0.25.1")
    assert config.facts.replicas == engines
    assert any("number of rollout engines" in one for one in config.not_seen) is (engines is None)


def test_sequences_that_a_threshold_takes_out_make_rollout_logprobs_a_part_of_the_loss() -> None:
    off = ALONE.replace("correction: true", "correction: false")
    assert read_one(DIALECT, off, "0.25.1").facts.importance_sampling_correction is False
    masked = off.replace("grpo:\n", "grpo:\n  seq_logprob_error_threshold: 2\n", 1)
    assert read_one(DIALECT, masked, "0.25.1").facts.importance_sampling_correction is True


@pytest.mark.parametrize(("recompute", "resets"), [("true", True), ("false", False)])
def test_asynchronous_training_keeps_the_cache_unless_told_to_recompute(recompute: str, resets: bool) -> None:
    flying = (
        f"enabled: true\n    in_flight_weight_updates: true\n    recompute_kv_cache_after_weight_updates: {recompute}"
    )
    config = read_one(DIALECT, ALONE.replace("enabled: false", flying), "0.25.1")
    assert config.facts.weight_updates == "in flight"
    assert config.facts.resets_prefix_cache is resets


def test_parents_are_inherited_along_the_chain(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "base.yaml").write_text(ALONE)
    (tmp_path / "middle.yaml").write_text("defaults: base.yaml\npolicy:\n  precision: float32\n")
    child = tmp_path / "recipes" / "mine.yaml"
    child.write_text(
        "defaults: ../middle.yaml\npolicy:\n  generation:\n    vllm_cfg:\n      logprobs_mode: processed_logprobs\n"
    )
    config = read_file(DIALECT, child, "0.25.1")
    assert config.engine["logprobs_mode"].value == "processed_logprobs"
    assert config.engine["dtype"].value == "float32"
    assert config.sampling["temperature"].value == 0.9
    assert [Path(part).name for part in config.parts] == ["base.yaml", "middle.yaml"]


def test_a_child_may_replace_a_mapping_instead_of_merging_it(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(ALONE)
    child = tmp_path / "mine.yaml"
    child.write_text(
        "defaults: base.yaml\npolicy:\n  generation:\n    vllm_kwargs:\n      _override_: true\n      max_logprobs: 3\n"
    )
    engine = read_file(DIALECT, child, "0.25.1").engine
    assert engine["max_logprobs"].value == 3 and "compilation_config" not in engine


def test_what_a_missing_parent_says_is_unknown() -> None:
    text = "defaults: ../base.yaml\npolicy:\n  generation:\n    vllm_cfg:\n      tensor_parallel_size: 4\n"
    config = read_one(DIALECT, text, "0.25.1")
    for name in ("enable_prefix_caching", "logprobs_mode", "enforce_eager", "dtype"):
        assert isinstance(config.engine[name].value, Unknown), name
    assert isinstance(config.sampling["temperature"].value, Unknown)
    assert isinstance(config.trainer["weight_updates"].value, Unknown)
    assert any("../base.yaml" in sentence for sentence in config.not_seen)


def test_another_backend_gives_no_config() -> None:
    assert read_all(DIALECT, ALONE.replace("backend: vllm", "backend: megatron"), "0.25.1") == ()


def test_fields_are_written_to_vllm_cfg_and_everything_else_to_vllm_kwargs() -> None:
    config = read_one(DIALECT, ALONE, "0.25.1")
    mode = rewritten(config, ALONE, "logprobs_mode", "processed_logprobs")
    assert "      enable_chunked_prefill: false\n      logprobs_mode: processed_logprobs\n" in mode
    other = rewritten(config, ALONE, "async_scheduling", False)
    assert other == ALONE + "      async_scheduling: false\n"


def test_what_is_no_nemo_rl_config_is_not_recognised() -> None:
    assert not DIALECT.recognise(source_of("policy:\n  generation: vllm_cfg\n"))


def test_a_written_null_of_prefix_caching_is_on_at_its_own_place() -> None:
    config = read_one(DIALECT, ALONE.replace("enforce_eager: true", "enable_prefix_caching: null"), "0.25.1")
    setting = config.engine["enable_prefix_caching"]
    assert (setting.value, setting.written) == (True, None)
    assert setting.place is not None and setting.place.setting.endswith("vllm_cfg.enable_prefix_caching")


def test_an_engine_of_several_ranks_is_started_by_ray_whatever_is_written() -> None:
    setting = read_one(DIALECT, ALONE, "0.18.1").engine["distributed_executor_backend"]
    assert (setting.value, setting.origin) == ("ray", Origin.FRAMEWORK)
    written = ALONE + "      distributed_executor_backend: mp\n"
    config = read_one(DIALECT, written, "0.18.1")
    assert config.engine["distributed_executor_backend"].value == "ray"
    assert "distributed_executor_backend" in lost_names(config)


def test_the_executor_of_one_rank_is_vllms_choice_and_of_an_unknown_number_unknown() -> None:
    alone = ALONE.replace("tensor_parallel_size: 2", "tensor_parallel_size: 1")
    assert "distributed_executor_backend" not in read_one(DIALECT, alone, "0.18.1").engine
    text = "defaults: ../base.yaml\npolicy:\n  generation:\n    vllm_cfg:\n      tensor_parallel_size: 1\n"
    unknown = read_one(DIALECT, text, "0.18.1").engine["distributed_executor_backend"]
    assert isinstance(unknown.value, Unknown)


def test_v1_is_chosen_by_the_framework_where_vllm_has_both_engines() -> None:
    setting = read_one(DIALECT, ALONE, "0.8.5").environment["VLLM_USE_V1"]
    assert (setting.value, setting.origin) == ("1", Origin.FRAMEWORK)
    assert "VLLM_USE_V1" not in read_one(DIALECT, ALONE, "0.18.1").environment


def test_a_parent_named_many_times_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    neighbour = Source.neighbour
    monkeypatch.setattr(Source, "neighbour", lambda self, name: opened.append(name) or neighbour(self, name))
    (tmp_path / "base.yaml").write_text(ALONE)
    child = tmp_path / "mine.yaml"
    child.write_text(f"defaults: [{', '.join(['base.yaml'] * 3000)}]\npolicy:\n  generation:\n    vllm_cfg: {{}}\n")
    config = read_file(DIALECT, child, "0.25.1")
    assert opened == ["base.yaml"] and len(config.parts) == 1


def test_files_that_share_their_parents_take_no_longer_than_they_are_many(tmp_path: Path) -> None:
    for number in range(11):
        listed = ", ".join(f"{number + 1}{letter}.yaml" for letter in "abcdef")
        for letter in "abcdef":
            (tmp_path / f"{number}{letter}.yaml").write_text(f"defaults: [{listed}]\nx: {number}\n")
    for letter in "abcdef":
        (tmp_path / f"11{letter}.yaml").write_text(ALONE)
    config = read_file(DIALECT, tmp_path / "0a.yaml", "0.25.1")
    assert len(config.parts) == 66


def test_overrides_of_a_command_are_read_on_top_of_the_config_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(ALONE)
    script = tmp_path / "run.sh"
    script.write_text(
        "uv run run_grpo.py --config conf/base.yaml \\\n  policy.generation.temperature=0.8 \\\n"
        "  policy.generation.vllm_cfg.tensor_parallel_size=4 $MORE\n"
    )
    config = read_file(DIALECT, script, "0.25.1")
    size = config.engine["tensor_parallel_size"]
    assert size.value == 4 and size.place is not None and size.place.line == 3
    assert config.engine["enforce_eager"].value is True and config.sampling["temperature"].value == 0.8
    assert config.parts == (str(tmp_path / "base.yaml"),)
    assert "$MORE may hold further overrides" in config.not_seen
    text = rewritten(config, script.read_text(), "generation_config", "vllm")
    assert "++policy.generation.vllm_kwargs.generation_config=vllm" in text


def test_what_the_config_under_a_commands_overrides_says_is_unknown_where_it_is_not_there() -> None:
    text = "uv run run_grpo.py --config a.yaml policy.generation.vllm_cfg.enforce_eager=true\n"
    config = read_one(DIALECT, text, "0.25.1", "run.sh")
    assert config.engine["enforce_eager"].value is True
    assert isinstance(config.sampling["temperature"].value, Unknown)
    assert "a.yaml, which this config inherits, is not beside it, or not in its work tree" in config.not_seen


@pytest.mark.parametrize(
    ("line", "mode"),
    [
        ('llm_kwargs = dict(logprobs_mode="processed_logprobs")', "processed_logprobs"),
        ('llm_kwargs = dict(logprobs_mode="raw_logprobs")', "raw_logprobs"),
        ('llm_kwargs["logprobs_mode"] = logprobs_mode', None),
        ("llm_kwargs.update(given)", Unknown),
    ],
)
def test_a_copy_of_the_code_tells_who_sets_logprobs_mode(tmp_path: Path, line: str, mode: object) -> None:
    worker = tmp_path / "nemo_rl" / "models" / "generation" / "vllm" / "vllm_worker.py"
    worker.parent.mkdir(parents=True)
    worker.write_text(f"{line}\nenable_sleep_mode=True\n")
    config = tmp_path / "run.yaml"
    config.write_text(ALONE)
    engine = read_file(DIALECT, config, "0.25.1").engine
    found = engine["logprobs_mode"].value if "logprobs_mode" in engine else None
    assert isinstance(found, Unknown) if mode is Unknown else found == mode
    assert engine["enable_sleep_mode"].value is True and isinstance(engine["trust_remote_code"].value, Unknown)


def test_what_the_worker_gives_the_engine_is_not_written_into_its_keywords_again() -> None:
    config = read_one(DIALECT, ALONE, "0.25.1")
    assert config.write("seed", 7) is None and config.write("distributed_executor_backend", "mp") is None


def test_updates_in_flight_that_are_not_known_are_unknown() -> None:
    text = ALONE.replace("enabled: false", "enabled: true\n    in_flight_weight_updates: ${oc.env:FLYING}")
    assert isinstance(read_one(DIALECT, text, "0.25.1").trainer["weight_updates"].value, Unknown)
