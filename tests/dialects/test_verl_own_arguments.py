"""What verl gives its engine by itself is known where every possible release and kind of engine agrees."""

import pytest
from reading import read_one
from verl_samples import SYNC, YAML, in_script

from rlaudit.dialects.declared import declared
from rlaudit.settings.rollout_config import RolloutConfig, Setting
from rlaudit.unknown import Unknown

DIALECT = declared()["verl"]


def script(vllm: str, *overrides: str) -> RolloutConfig:
    return read_one(DIALECT, in_script(*overrides), vllm, "run.sh")


def is_open(setting: Setting) -> bool:
    return isinstance(setting.value, Unknown)


def test_nothing_is_said_of_a_seed_that_every_release_passes_in_another_way() -> None:
    text = in_script().replace("    actor_rollout_ref.rollout.enable_prefix_caching=False \\\n", "")
    older, newer = read_one(DIALECT, text, "0.8.5", "run.sh"), script("0.18.1")
    assert is_open(older.engine["seed"]) and newer.engine["seed"].value == 42


@pytest.mark.parametrize("name", ["distributed_executor_backend", "override_generation_config"])
def test_what_depends_on_the_kind_of_engine_is_open_where_that_is_not_told(name: str) -> None:
    assert is_open(script("0.8.5").engine[name]) and not is_open(script("0.18.1").engine[name])


def test_in_process_engines_are_seeded_with_0_and_replicas_of_servers_differ_from_v0_8_on() -> None:
    assert read_one(DIALECT, SYNC, "0.8.5").engine["seed"].value == 0
    assert script("0.18.1").facts.seeds_replicas is True
    assert isinstance(script("0.8.5").facts.seeds_replicas, Unknown)


def test_graphs_are_chosen_by_the_servers_of_v0_8_and_later_alone() -> None:
    assert "compilation_config" in read_one(DIALECT, YAML, "0.18.1").engine
    assert "compilation_config" not in read_one(DIALECT, YAML, "0.11.0").engine
    sizes = YAML.replace("    name: vllm\n", "    name: vllm\n    cudagraph_capture_sizes: [1, 2]\n")
    assert is_open(read_one(DIALECT, sizes, "0.11.0").engine["compilation_config"])
    before = YAML + "algorithm:\n  rollout_is: true\n"
    assert "compilation_config" not in read_one(DIALECT, before, "0.11.0").engine


def test_an_engine_that_does_not_sleep_is_cleaned_by_some_releases_alone() -> None:
    off = "actor_rollout_ref.rollout.free_cache_engine=False"
    assert script("0.8.5").facts.resets_prefix_cache is True
    assert is_open(script("0.8.5", off).trainer["resets_prefix_cache"])
    assert is_open(script("0.8.5", off).engine["enable_sleep_mode"])
    assert script("0.18.1", off).facts.resets_prefix_cache is True
    assert script("0.11.0", off, "algorithm.rollout_is=true").facts.resets_prefix_cache is False


def test_every_written_key_of_a_rollout_is_listed_at_least() -> None:
    config = script("0.18.1", "actor_rollout_ref.rollout.multi_turn.format=hermes", "algorithm.kl_ctrl.kl_coef=0.1")
    options = {name: one.value for name, one in config.options.items()}
    assert options["actor_rollout_ref.rollout.multi_turn.format"] == "hermes"
    assert options["algorithm.kl_ctrl.kl_coef"] == 0.1
    assert "actor_rollout_ref.rollout.temperature" not in options
