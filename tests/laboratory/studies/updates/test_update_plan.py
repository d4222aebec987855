"""From a recipe to engine starts and cases."""

from pathlib import Path
from typing import Any

import pytest

from rlaudit.engines.hardware.accelerator import detect
from rlaudit.errors import UsageError
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.laboratory.studies.updates.cases import AFTER, COLD, COLD_AFTER, FLIGHT, WARM_AFTER, runs_of
from rlaudit.laboratory.studies.updates.plan import EngineStart, plan_starts
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of
from rlaudit.laboratory.study import load_study

RECIPE = update_recipe_of({"weight_updates": {"engines": [{"version": "0.18.1"}]}}, Path("x"))


def starts_of(device: str = "cpu", **engine: Any) -> tuple[EngineStart, ...]:
    document = {"weight_updates": {"engines": [{"version": "0.18.1", **engine}]}}
    return plan_starts(update_recipe_of(document, Path("x")), device)


def test_every_mode_meets_every_clear_cache_in_one_start_per_caching_level() -> None:
    starts = starts_of()
    assert [start.levels for start in starts] == [{"prefix-caching": "on"}, {"prefix-caching": "off"}]
    pairs = [(case.mode, case.clear_cache) for case in starts[0].cases]
    assert pairs == [(mode, clear) for mode in ("keep", "wait", "abort") for clear in (True, False)]


def test_salted_requests_are_tried_without_clearing_where_there_is_a_cache() -> None:
    cached, uncached = starts_of(modes=["none", "wait"], clear_cache=[True], salted=True)
    assert [case.name for case in cached.cases] == [
        "no pause",
        "mode=wait, clear_cache=True",
        "no pause, salted",
        "mode=wait, clear_cache=False, salted",
    ]
    assert not any(case.salted for case in uncached.cases)


@pytest.mark.parametrize(("device", "dtype"), [("cpu", "float32"), ("cuda", "bfloat16")])
def test_adapters_have_an_engine_of_their_own_in_a_dtype_that_its_kernels_take(device: str, dtype: str) -> None:
    (start,) = starts_of(device, modes=[], adapters=["in place", "new name"])
    assert start.engine_args["enable_lora"] and start.engine_args["dtype"] == dtype
    assert [case.name for case in start.cases] == ["loaded in place", "new name and number"]
    assert start.checkpoints == ["0", "adapter-1"]


def test_a_release_whose_cpu_attention_wants_large_blocks_gets_them() -> None:
    assert starts_of()[0].engine_args["block_size"] == 16
    assert starts_of(version="0.32.0")[0].engine_args["block_size"] == 32


def test_the_runs_that_are_compared_ask_with_the_same_seeds() -> None:
    runs = runs_of(RECIPE.weight_updates, 16, 0)
    assert runs[AFTER] == runs[COLD_AFTER] == runs[WARM_AFTER]
    assert len(runs[AFTER]["requests"]) == 32


def test_without_a_pause_nothing_can_be_cleared() -> None:
    (start,) = starts_of(modes=["none"], prefix_caching=["on"])
    assert [(case.name, case.clear_cache) for case in start.cases] == [("no pause", False)]


def test_what_is_broadcast_is_given_to_a_reload_where_weights_are_packed() -> None:
    starts = starts_of(transport="broadcast", modes=["keep"], clear_cache=[False])
    # CPU builds pack their weights: load_weights would find nothing to write into.
    assert {(start.transport, start.path) for start in starts} == {("broadcast", "reload_from_iterator")}


def test_on_a_gpu_what_another_process_brings_is_given_to_load_weights() -> None:
    document = {"weight_updates": {"engines": [{"version": "0.18.1", "transport": "broadcast", "modes": ["keep"]}]}}
    starts = plan_starts(update_recipe_of(document, Path("x")), "cuda")
    assert {start.path for start in starts} == {"load_weights"}


def test_one_release_may_be_tried_with_several_settings_and_each_keeps_its_own() -> None:
    plain: dict[str, Any] = {"version": "0.18.1", "modes": ["wait"], "prefix_caching": ["on"]}
    engines = [plain, {**plain, "engine_args": {"dtype": "bfloat16"}}]
    starts = plan_starts(update_recipe_of({"weight_updates": {"engines": engines}}, Path("x")), "cpu")
    assert [start.name.removeprefix("vLLM 0.18.1, prefix-caching=on") for start in starts] == ["", ", dtype=bfloat16"]
    with pytest.raises(UsageError, match="two engine starts"):
        plan_starts(update_recipe_of({"weight_updates": {"engines": [plain, plain]}}, Path("x")), "cpu")


def test_seeds_differ_between_prompts_samples_and_streams() -> None:
    runs = runs_of(RECIPE.weight_updates, 16, 0)
    seeds = [request["seed"] for run in (COLD, FLIGHT, AFTER) for request in runs[run]["requests"]]
    assert len(set(seeds)) == len(seeds) == 16 + 32 + 32


def test_the_estimate_names_every_start_and_the_minutes() -> None:
    study, recipe, _ = load_study("weight-update", "cpu")
    cpu, prompts = detect(cpu=True), load_prompts(recipe.prompts)
    cost = study.cost(study.plan(recipe, cpu, prompts), cpu, prompts)
    assert cost.engine_starts == 6 == sum(" cases, loading by " in line for line in cost.lines)
    assert cost.moves > cost.engine_starts and cost.passes > cost.sampled > 0
