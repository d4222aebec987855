"""Runs the engine plants with the machinery of `ablate`, and judges each record blind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from selftest.blind import CLEAN

from evidence.selftest.engines.engine_observation import judge_engine, observe_engine
from evidence.selftest.engines.engine_plants import STANDARD, EnginePlant, engine_plants
from evidence.selftest.engines.engine_trial import EngineTrial
from evidence.selftest.engines.engines_under_test import EnginesUnderTest
from rlaudit.laboratory.carry_out import carried_out
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.laboratory.studies.arms.plan import make_plan
from rlaudit.laboratory.studies.arms.recipe import recipe_of
from rlaudit.laboratory.studies.arms.run import FinishedRun
from rlaudit.laboratory.studies.arms.study import STUDY
from rlaudit.laboratory.study import releases
from rlaudit.text.progress import Progress

HERE = Path("the self-test's engine plants")


def recipe_document(plants: Sequence[EnginePlant], seed: int, device: str) -> dict[str, Any]:
    """A recipe with a block for each plant, on cuda or cpu."""
    return {
        "schema": "rlaudit-recipe/1",
        "description": "Faults with known answers",
        "seed": seed,
        "samples": 2,
        "rounds": 2,
        "max_tokens": 40,
        "blocks": [plant.as_block(device) for plant in plants],
    }


def run_engine_plants(
    engines: EnginesUnderTest, causes: Sequence[str], seed: int, folder: Path, progress: Progress
) -> list[EngineTrial]:
    """Plants of these causes (all by default) and what they need for a floor. Finished engines in `folder` are kept."""
    plants = wanted_plants(causes, engines.releases)
    if not plants:
        return []
    device = engines.accelerator.kind
    recipe = recipe_of({**recipe_document(plants, seed, device), **engines.recipe_keys}, HERE, device)
    prompts = load_prompts(recipe.prompts)
    plan = make_plan(recipe)
    given = engines.given_for(releases(plan))
    with carried_out(STUDY, plan, folder, engines.accelerator, prompts, progress, given) as (run, _):
        return judge_run(run, plants)


def wanted_plants(causes: Sequence[str], releases: Sequence[str] = STANDARD) -> list[EnginePlant]:
    """The plants of these causes with their floors, in the order of all."""
    every = engine_plants(releases)
    asked = [plant for plant in every if not causes or set(plant.causes or (CLEAN,)) & set(causes)]
    floors = {plant.floor for plant in asked}
    return [plant for plant in every if plant in asked or plant.name in floors]


def judge_run(run: FinishedRun, plants: Sequence[EnginePlant]) -> list[EngineTrial]:
    """Judge every rollout of a finished run."""
    blocks = {block.name: block for block in run.plan.blocks}
    observed = {}
    trials = []
    for plant in plants:
        finished = run.of_block(blocks[plant.name])["candidate"]
        if not finished.ok:
            why = finished.failure.message if finished.failure else finished.status
            trials.append(EngineTrial(plant.name, plant.causes, None, why))
            continue
        observed[plant.name] = observation = observe_engine(run, finished, plant)
        floor_k2 = observation.floor_k2
        if plant.floor is not None and plant.floor in observed:
            floor_k2 = max(floor_k2, _k2(observed[plant.floor].batch))
        trials.append(EngineTrial(plant.name, plant.causes, judge_engine(observation, plant.claimed, floor_k2)))
    return trials


def _k2(batch: Any) -> float:
    apart_T = batch.trainer_logprobs_T - batch.rollout_logprobs_T
    return 0.5 * float((apart_T**2).mean())
