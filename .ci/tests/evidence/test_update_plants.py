"""Update plants: a recipe that makes what they need, and tables of made-up requests in which they are named."""

import pytest
from evidence.selftest.engines.run_engine_plants import HERE
from evidence.selftest.engines.run_update_plants import judge_table, judge_updates, table_of
from evidence.selftest.engines.update_plants import MODE, UpdatePlant, recipe_document, update_plants
from flights import ScoredFlights, run_of

from rlaudit.laboratory.studies.updates.cases import AFTER, COLD_AFTER, FLIGHT
from rlaudit.laboratory.studies.updates.plan import plan_starts
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of

BOTH = ("0.8.5", "0.18.1")


def around_an_update(*, cached: int, late: float = 0.0, stale: float = 0.0) -> ScoredFlights:
    """Requests that end on version 0, and requests of version 1 with and without cached prompt tokens."""
    scored = ScoredFlights()
    scored.add(run_of(FLIGHT, [0] * 12, cached_tokens=cached), spread=1e-5, v0=0.0, v1=late)
    scored.add(run_of(AFTER, [1] * 8, cached_tokens=cached), spread=1e-5, v1=stale)
    return scored.add(run_of(COLD_AFTER, [1] * 8), spread=1e-5, v1=0.0)


def test_the_recipe_makes_the_update_that_every_plant_asks_for() -> None:
    starts = plan_starts(update_recipe_of(recipe_document(BOTH, 0), HERE), device="cpu")
    made = {(start.version, case.mode, case.clear_cache) for start in starts for case in start.cases}
    assert made == {(plant.version, MODE, plant.clear_cache) for plant in update_plants()}


def test_weight_updates_plant_both_causes_and_nothing() -> None:
    assert {plant.causes for plant in update_plants()} == {(), ("stale-weights",), ("stale-prefix-kv",)}


@pytest.mark.parametrize("cached", [0, 16])
def test_rollouts_that_are_scored_with_the_weights_that_sampled_them_are_clean(cached: int) -> None:
    scored = around_an_update(cached=cached, late=0.2)
    assert judge_table(table_of(scored.tokens(), trained_late=False)).names == set()


@pytest.mark.parametrize("cached", [0, 16])
def test_rollouts_that_are_trained_on_after_the_update_are_stale_weights(cached: int) -> None:
    scored = around_an_update(cached=cached, late=0.2)
    judged = judge_table(table_of(scored.tokens(), trained_late=True))
    assert judged.names == {"stale-weights"}


def test_old_keys_in_the_cache_are_a_stale_prefix_cache() -> None:
    scored = around_an_update(cached=16, late=0.2, stale=0.1)
    assert judge_table(table_of(scored.tokens(), trained_late=False)).names == {"stale-prefix-kv"}


def test_an_engine_that_did_not_start_is_wrong_and_says_why() -> None:
    from types import SimpleNamespace

    start = SimpleNamespace(version="0.8.5", cases=())
    run = SimpleNamespace(records=[SimpleNamespace(start=start, failure="out of memory")])
    (trial,) = judge_updates(run, [UpdatePlant("clean", "0.8.5")])  # type: ignore[arg-type]
    assert (trial.right, trial.failure) == (False, "out of memory")
