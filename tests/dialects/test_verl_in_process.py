"""verl's synchronous rollouts: the engine in the worker's own process, told by keywords and not by flags."""

import pytest
from reading import lost_names, read_one, rewritten
from verl_samples import SCRIPT, SYNC, in_script

from rlaudit.dialects.declared import declared
from rlaudit.unknown import Unknown

DIALECT = declared()["verl"]


@pytest.mark.parametrize("vllm", ["0.8.5", "0.11.0", "0.18.1"])
def test_an_in_process_engine_is_told_false_and_never_a_negation(vllm: str) -> None:
    text = rewritten(read_one(DIALECT, SYNC, vllm), SYNC, "async_scheduling", False)
    assert text == SYNC + "        async_scheduling: false\n"
    assert read_one(DIALECT, text, vllm).engine["async_scheduling"].value is False
    script = in_script("actor_rollout_ref.rollout.mode=sync")
    config = read_one(DIALECT, script, vllm, "run.sh")
    assert "engine_kwargs.vllm.async_scheduling=false" in rewritten(config, script, "async_scheduling", False)
    assert "rollout.enforce_eager=false" in rewritten(config, script, "enforce_eager", False)


def test_prefix_caching_of_an_in_process_engine_is_written_only_where_v0_6_is_certain() -> None:
    older = SYNC.replace("    enable_prefix_caching: false\n", "")
    assert read_one(DIALECT, older, "0.8.5").write("enable_prefix_caching", False) is None
    text = rewritten(read_one(DIALECT, SYNC, "0.11.0"), SYNC, "enable_prefix_caching", True)
    assert text == SYNC.replace("enable_prefix_caching: false", "enable_prefix_caching: true")


def test_a_keyword_that_verl_passes_itself_is_not_written_twice() -> None:
    assert read_one(DIALECT, SYNC, "0.11.0").write("disable_custom_all_reduce", False) is None
    assert read_one(DIALECT, SYNC, "0.11.0").write("seed", 3) is None


def test_false_is_not_written_where_the_kind_of_engine_is_unknown() -> None:
    config = read_one(DIALECT, SCRIPT, "0.10.2", "run.sh")
    assert config.write("async_scheduling", False) is None
    assert config.write("enable_prefix_caching", False) is None
    assert config.write("max_logprobs", 20) is not None
    server = in_script("actor_rollout_ref.actor.tis_imp_ratio_cap=2", "actor_rollout_ref.rollout.mode=async")
    assert read_one(DIALECT, server, "0.18.1", "run.sh").write("async_scheduling", False) is None


def test_the_engine_is_in_process_by_default_up_to_v0_6_unless_a_recipe_says_otherwise() -> None:
    older, recipe = "actor_rollout_ref.actor.tis_imp_ratio_cap=2", "async_training.partial_rollout=true"
    assert read_one(DIALECT, in_script(older), "0.18.1", "run.sh").offline
    assert not read_one(DIALECT, in_script(older, recipe), "0.18.1", "run.sh").offline


def test_a_negation_is_an_error_in_process_and_unknown_where_the_engine_is() -> None:
    text = SYNC.replace("max_logprobs: 5", "no_async_scheduling: true")
    config = read_one(DIALECT, text, "0.11.0")
    assert "async_scheduling" not in config.engine
    assert lost_names(config) == {"no_async_scheduling"} and "TypeError" in config.lost[0].reason
    script = in_script("+actor_rollout_ref.rollout.engine_kwargs.vllm.no_async_scheduling=true")
    assert isinstance(read_one(DIALECT, script, "0.10.2", "run.sh").engine["async_scheduling"].value, Unknown)
    assert read_one(DIALECT, script, "0.12.0", "run.sh").engine["async_scheduling"].value is False


@pytest.mark.parametrize("actor", ["", "strategy: fsdp2", "strategy: fsdp"])
def test_each_rank_of_an_fsdp_trainer_draws_from_its_own_generator(actor: str) -> None:
    assert read_one(DIALECT, _with_actor(actor), "0.8.5").facts.seeds_replicas is True


@pytest.mark.parametrize("actor", ["strategy: megatron", "megatron: {param_offload: true}"])
def test_whether_megatron_ranks_have_their_own_generators_depends_on_the_release(actor: str) -> None:
    assert isinstance(read_one(DIALECT, _with_actor(actor), "0.8.5").trainer["seeds_replicas"].value, Unknown)
    assert read_one(DIALECT, _with_actor(actor), "0.11.0").facts.seeds_replicas is True


def _with_actor(lines: str) -> str:
    # A key that v0.6 brought.
    older = SYNC.replace("    enable_prefix_caching: false\n", "")
    return older.replace("  actor:\n", f"  actor:\n    {lines}\n", 1)
