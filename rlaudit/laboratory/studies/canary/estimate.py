"""What a canary will cost, before anything is started.

Seconds were measured with the default model and training on 2 quiet cores.
"""

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.emulated_dtypes import emulated
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.studies.canary.plan import CanaryPlan
from rlaudit.laboratory.studies.canary.recipe import WeightHandover
from rlaudit.laboratory.study import Cost

START_SECONDS = {"cpu": 25.0, "cuda": 60.0}
# A step of 256 sequences of 6 tokens; most of it is the engine.
STEP_SECONDS = {"cpu": 0.8, "cuda": 0.5}
SEQUENCES = 256
# How much longer a training in a dtype takes that the processor emulates: 145 s against 45 s with AVX2 only.
EMULATED_TIMES = 3.2
# Sampled once; trained on forward, and backward for twice that. Prompts are trained on as well.
PASSES_OF_A_STEP = 8


def _handed(updates: WeightHandover) -> str:
    """How weights are handed over, where it is not from disk and in turns."""
    brought = "" if updates.transport == "disk" else f", weights by {updates.transport}"
    return f"{brought}, {updates.lag} ahead" if updates.lag else brought


def cost_of_trainings(plan: CanaryPlan, accelerator: Accelerator, prompts: PromptSet) -> Cost:
    """Every arm with its engine, and how often it is trained."""
    machine, training = machine_of(accelerator), plan.recipe.training
    lines = [
        f"{arm.name}: {plan.expected(arm, machine, plan.recipe.model)} of vLLM {arm.version}, "
        f"{training.seeds} x {training.steps} steps{_handed(arm.updates)}"
        for arm in plan.recipe.arms
    ]
    per_step = STEP_SECONDS[machine.platform] * training.prompts_per_step * training.samples / SEQUENCES
    seconds = 0.0
    for run in plan.runs:
        slower = EMULATED_TIMES if emulated(str(plan.engine_args(run.arm)["dtype"]), accelerator) else 1.0
        seconds += slower * (START_SECONDS[machine.platform] + training.steps * per_step)
    tokens = len(plan.runs) * training.steps * training.prompts_per_step * training.samples * training.max_tokens
    return Cost(lines, len(plan.runs), seconds, tokens * PASSES_OF_A_STEP, billions=0.0)
