"""What `pytest -m gpu` runs is a recipe also where no GPU shows it."""

from pathlib import Path

from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.updates.plan import plan_starts
from rlaudit.laboratory.study import load_study

FOLDER = Path(__file__).parents[3] / "engine_runs"


def test_the_arms_for_a_gpu_are_a_plan() -> None:
    arms = make_plan(load_study(str(FOLDER / "gpu-arms.yaml"), "cuda")[1]).blocks[0].arms
    changed = {arm.factor for arm in arms}
    assert changed >= {"logprobs-mode", "prefix-caching", "async-scheduling", "batch-invariance", "fp32-head", "dummy"}


def test_the_weight_update_for_a_gpu_is_a_plan() -> None:
    _, recipe, _ = load_study(str(FOLDER / "gpu-weight-update.yaml"), "cuda")
    (start,) = plan_starts(recipe, device="cuda")
    assert [case.clear_cache for case in start.cases] == [True, False]
