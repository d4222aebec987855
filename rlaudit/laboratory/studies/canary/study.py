"""Canary: a short training per arm, on real engines, with the curves by which people judge a migration."""

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.dtypes import emulated
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.canary.plan import CanaryPlan, plan_trainings
from rlaudit.laboratory.studies.canary.recipe import WeightHandover, training_recipe_of
from rlaudit.laboratory.studies.canary.run import execute
from rlaudit.laboratory.study import EMULATED_TIMES, Cost, Study

# A token is sampled once, then trained on: forward, and backward for twice that. Prompts are trained on as well.
PASSES_OF_A_TOKEN = 8
# Of the default model, which is trained on this machine.
BILLIONS = 0.0005


def cost_of_trainings(plan: CanaryPlan, accelerator: Accelerator, prompts: PromptSet) -> Cost:
    """Return the cost of every arm with its engine and its trainings."""
    machine, training = machine_of(accelerator), plan.recipe.training
    lines = [
        f"{arm.name}: {plan.engine(arm).expected(machine, plan.recipe.model)} of vLLM {arm.version}, "
        f"{training.seeds} x {training.steps} steps{_handover(arm.updates)}"
        for arm in plan.recipe.arms
    ]
    tokens = training.steps * training.prompts_per_step * training.samples * training.max_tokens
    dtypes = [str(engine.engine_args["dtype"]) for engine in plan.engines]
    times = sum(EMULATED_TIMES if emulated(dtype, accelerator) else 1.0 for dtype in dtypes)
    passes = tokens * PASSES_OF_A_TOKEN * times
    return Cost(lines, len(plan.runs), tokens * len(plan.runs), passes, billions=BILLIONS)


def _handover(updates: WeightHandover) -> str:
    """Return how weights are handed over, if not from disk and in turns."""
    brought = "" if updates.transport == "disk" else f", weights by {updates.transport}"
    return f"{brought}, {updates.lag} ahead" if updates.lag else brought


STUDY = Study("canary", "training", training_recipe_of, plan_trainings, cost_of_trainings, execute)
