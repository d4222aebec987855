"""What `pytest -m gpu` runs is a recipe also where no GPU shows it."""

from pathlib import Path

from rlaudit.laboratory.recipe import load_recipe
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.updates.matrix import plan_starts
from rlaudit.laboratory.studies.updates.settings import load_update_recipe

FOLDER = Path(__file__).parents[3] / "engine_runs"


def test_the_arms_for_a_gpu_are_a_plan() -> None:
    arms = make_plan(load_recipe(str(FOLDER / "gpu-arms.yaml"), "cuda").recipe).blocks[0].arms
    changed = {arm.factor for arm in arms}
    assert changed >= {"logprobs-mode", "prefix-caching", "async-scheduling", "batch-invariance", "fp32-head", "dummy"}


def test_the_weight_update_for_a_gpu_is_a_plan() -> None:
    loaded = load_update_recipe(str(FOLDER / "gpu-weight-update.yaml"), "cuda")
    assert loaded is not None
    (start,) = plan_starts(loaded.recipe, prompts=16, device="cuda")
    assert [case.clear_cache for case in start.cases] == [True, False]
