"""Engine plants: recipes that ablate's machinery accepts, edits that are what they say, and records judged blind."""

import numpy as np
import pytest

from rlaudit.experiment.plan import make_plan
from rlaudit.experiment.recipe import recipe_of
from rlaudit.mismatch.alignment import Misalignment, alignment_report
from rlaudit.mismatch.candidates import Semantics
from rlaudit.reports.selftest_text import render
from rlaudit.selftest.blind import Label, all_generators, planted
from rlaudit.selftest.document import document_of_engines
from rlaudit.selftest.engines.engine_plants import dropped_token, engine_plants, off_by_one
from rlaudit.selftest.engines.engine_trial import EngineTrial
from rlaudit.selftest.engines.run_engine_plants import HERE, recipe_document, wanted_plants
from rlaudit.selftest.engines.update_plants import update_plants
from rlaudit.selftest.ground import new_ground


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(2)
    return planted(new_ground(all_generators()["development"], rng), Label(), 1e-5, rng).batch


def test_the_plants_are_a_plan_of_both_engines_with_one_arm_each():
    recipe = recipe_of(recipe_document(wanted_plants([]), 0), HERE, "cpu").recipe
    plan = make_plan(recipe)
    assert plan.versions == ("0.8.5", "0.18.1")
    assert [block.name for block in plan.blocks] == [plant.name for plant in engine_plants()]
    assert all(len(block.arms) == 1 for block in plan.blocks)


def test_every_cause_of_the_issue_is_planted_or_said_not_to_be():
    causes = {cause for plant in (*engine_plants(), *update_plants()) for cause in plant.causes}
    assert causes >= {
        "raw-logprobs", "trainer-temperature", "hidden-truncation", "penalty", "head-precision", "off-by-one",
        "token-dropped-after-resume", "stale-weights", "stale-prefix-kv",
    }  # fmt: skip
    assert "stale-prefix-kv on 0.8.5" in document_of_engines([])["not_seen"][0]


def test_a_plant_is_run_with_the_healthy_one_that_gives_its_floor():
    names = [plant.name for plant in wanted_plants(["head-precision"])]
    assert names == [
        f"{plant} on {version}"
        for version in ("0.8.5", "0.18.1")
        for plant in ("clean", "bfloat16 head of the trainer")
    ]


def test_hidden_parameters_are_not_claimed():
    for plant in engine_plants():
        if plant.causes in (("hidden-truncation",), ("penalty",)):
            assert plant.claimed == Semantics(plant.sampling["temperature"])
            assert len(plant.sampling) > 1


def test_edits_are_found_as_what_they_are(batch):
    assert alignment_report(off_by_one(batch)).of_kind(Misalignment.OFF_BY_ONE)
    lost = alignment_report(dropped_token(batch))
    assert {one.kind for one in lost.misaligned} == {Misalignment.TOKEN_DROPPED}


def test_a_failed_engine_is_wrong_and_says_why():
    text = render(document_of_engines([EngineTrial("clean on 0.8.5", (), None, "out of memory")]))
    assert "engine failed: out of memory" in text
    assert "0 of 1" in text
