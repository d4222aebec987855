"""The recipe of a canary, and the plan that it makes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlaudit.diagnosis.canary import ANY, JUDGED
from rlaudit.errors import UsageError
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.laboratory.studies.canary.plan import CanaryPlan, plan_trainings
from rlaudit.laboratory.studies.canary.recipe import CanaryRecipe, Training, reward_file, training_recipe_of
from rlaudit.laboratory.study import load_study
from rlaudit.laboratory.trainer import __path__ as trainer_folder
from rlaudit.vllm.machine import machine_named


def shipped() -> CanaryRecipe:
    recipe = load_study("canary", "cpu")[1]
    assert isinstance(recipe, CanaryRecipe)
    return recipe


def planned(recipe: CanaryRecipe, prompts: str = "running-sums") -> CanaryPlan:
    return plan_trainings(recipe, SimpleNamespace(kind="cpu"), load_prompts(prompts))  # type: ignore[arg-type]


def test_the_shipped_recipe_begins_with_v0_and_every_engine_is_the_one_it_is_about() -> None:
    recipe = shipped()
    plan = planned(recipe)
    machine = machine_named("cpu")
    kinds = [plan.engine(arm).expected(machine).kind for arm in recipe.arms]
    assert kinds == ["V0"] + ["V1"] * (len(recipe.arms) - 1)
    assert len(plan.runs) == 3 * len(recipe.arms)


def test_every_claim_is_about_a_curve_that_is_judged() -> None:
    assert {claim.metric for claim in shipped().claims} <= {*JUDGED, ANY}


def test_every_part_of_a_training_that_a_recipe_may_name_is_a_file() -> None:
    training = shipped().training
    folder = Path(trainer_folder[0])
    assert (folder / "objectives" / f"{training.objective}.py").is_file()
    assert (folder / "rewards" / f"{training.reward}.py").is_file()


def test_a_reward_of_the_users_own_is_a_file_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "shortest.py"
    file.write_text("def reward(token_ids, text, answer):\n    return 1 / (1 + len(token_ids))\n")
    assert reward_file(Training(reward=str(file)).reward) == file
    with pytest.raises(ValueError, match="there is no file"):
        Training(reward=str(tmp_path / "longest.py"))


def test_quick_is_a_reference_and_two_arms_with_one_seed_where_a_recipe_has_a_short_form() -> None:
    quick = shipped().quickened()
    assert [arm.name for arm in quick.arms] == ["V0", "V1 as it is", "V1 processed"]
    assert quick.training.seeds == 1
    assert {claim.arm for claim in quick.claims} <= {arm.name for arm in quick.arms}
    with pytest.raises(UsageError, match="no short form"):
        load_study("weight-update", "cpu")[1].quickened()


def test_a_group_of_one_sample_and_prompts_without_answers_are_refused() -> None:
    assert shipped().overridden(samples=4).training.samples == 4
    with pytest.raises(UsageError, match="group of one"):
        shipped().overridden(samples=1)
    with pytest.raises(UsageError, match="no answers"):
        planned(shipped(), "arithmetic")


def after(updates: dict[str, Any]) -> dict[str, Any]:
    """Two arms, of which the second is handed its weights in this way."""
    return {"arms": [{"name": "V0", "version": "0.8.5"}, {"name": "V1", "version": "0.18.1", "updates": updates}]}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"claims": [{"says": "a", "arm": "c", "metric": "any", "expects": "separated"}]}, "'c' is no arm"),
        ({"quick": {"arms": ["a", "c"]}}, "'c' is no arm"),
        ({"arms": [{"name": "a", "version": "0.18.1"}] * 2}, "two arms have one name"),
        ({"arms": [{"name": "a", "version": "0.18.1"}]}, "at least 2"),
        ({"training": {"step": 30}}, "unknown key training.step; did you mean steps"),
        ({"equivalence_margin": 1e-3}, "the band of the reference's seeds decides"),
        ({"training": {"objective": "dpo"}}, "no objective 'dpo'"),
        ({"training": {"correction": "dpo"}}, "no correction 'dpo'"),
        ({"training": {"reward": "dpo"}}, "no reward 'dpo'"),
        (after({"transport": "broadcast", "path": "reload_weights"}), "reload_weights reads a folder"),
        (after({"lag": 2, "mode": "abort"}), "abort ends the requests"),
        (after({"planted": ["lm_head"]}), "planted needs another path"),
    ],
)
def test_a_recipe_that_is_wrong_says_where(changes: dict[str, Any], complaint: str) -> None:
    document = {"training": {}, "arms": [{"name": name, "version": "0.18.1"} for name in "ab"], **changes}
    with pytest.raises(UsageError, match=complaint):
        training_recipe_of(document, Path("x.yaml"))
