"""Engine plants: recipes that ablate's machinery accepts, edits that are what they say, and records judged blind."""

import numpy as np
import pytest
from evidence.selftest.__main__ import selftest
from evidence.selftest.document import document_of_engines
from evidence.selftest.engines.engine_plants import dropped_token, engine_plants, off_by_one
from evidence.selftest.engines.engine_trial import EngineTrial
from evidence.selftest.engines.engines_under_test import engines_under_test, not_planted
from evidence.selftest.engines.run_engine_plants import HERE, recipe_document, wanted_plants
from evidence.selftest.engines.update_plants import update_plants
from evidence.selftest.matrix import printed
from selftest.blind import Label, planted
from worlds.generator import all_generators
from worlds.ground import new_ground

from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, given_interpreters
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.errors import UsageError
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import recipe_of
from rlaudit.laboratory.study import releases
from rlaudit.meaning.candidates import Semantics
from rlaudit.tokens.alignment import Misalignment, alignment_report


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(2)
    return planted(new_ground(all_generators()["development"], rng), Label(), 1e-5, rng).batch


def test_the_plants_are_a_plan_of_both_engines_with_one_arm_each():
    recipe = recipe_of(recipe_document(wanted_plants([]), 0, "cpu"), HERE, "cpu")
    plan = make_plan(recipe)
    assert releases(plan) == ("0.8.5", "0.18.1")
    assert [block.name for block in plan.blocks] == [plant.name for plant in engine_plants()]
    assert all(len(block.arms) == 1 for block in plan.blocks)


def test_every_cause_is_planted_in_an_engine_or_said_not_to_be():
    causes = {cause for plant in (*engine_plants(), *update_plants()) for cause in plant.causes}
    assert causes >= {
        "raw-logprobs", "trainer-temperature", "hidden-truncation", "penalty", "head-precision", "off-by-one",
        "token-dropped-after-resume", "stale-weights", "stale-prefix-kv",
    }  # fmt: skip
    assert "stale-prefix-kv on 0.8.5" in document_of_engines([], not_planted()).not_seen[0]


@pytest.mark.parametrize(("release", "engine"), [("0.26.0", "V1"), ("0.9.2", "V0")])
def test_a_release_that_was_given_is_planted_with_what_its_engine_can_do_and_the_other_engine_is_named(release, engine):
    names = {plant.name for plant in (*engine_plants([release]), *update_plants([release]))}
    assert names and all(name.endswith(release) for name in names)
    assert (f"raw mode on {release}" in names) == (engine == "V1")
    blocks = recipe_document(wanted_plants([], [release]), 0, "cuda")["blocks"]
    assert {block["candidate"]["engine"] for block in blocks} == {engine}
    left_out = not_planted([release])[0]
    other, standard = ("V0", "0.8.5") if engine == "V1" else ("V1", "0.18.1")
    assert f"no interpreter holds an engine {other}" in left_out
    for plant in (*engine_plants([standard]), *update_plants([standard])):
        assert plant.name in left_out


def test_only_a_cpu_is_told_how_long_a_block_of_its_cache_is():
    for device, told in (("cpu", True), ("cuda", False)):
        blocks = recipe_document(wanted_plants([]), 0, device)["blocks"]
        assert {"block_size" in block["engine_args"] for block in blocks} == {told}


def test_the_releases_of_a_self_test_follow_from_the_interpreters_that_are_given():
    processor = Accelerator("cpu", "a processor", (), "", 2, 1024)
    assert engines_under_test(processor, NONE_GIVEN, None).releases == ("0.8.5", "0.18.1")
    one = engines_under_test(processor, given_interpreters(["0.26.0=python3"]), "/a/model")
    assert one.releases == ("0.26.0",)
    assert one.recipe_keys == {"model": "/a/model"}


def test_options_about_real_engines_need_real_engines():
    with pytest.raises(UsageError, match="Add --engines"):
        selftest(cpu=True)


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
    text = printed(document_of_engines([EngineTrial("clean on 0.8.5", (), None, "out of memory")], []))
    assert "engine failed: out of memory" in text
    assert "0 of 1" in text
