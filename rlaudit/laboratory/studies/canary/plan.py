"""From a recipe to trainings: every arm once for each seed, all arms with the first seed first.

Seeds differ in what is sampled. Every training is given the same prompts in the same order: what a hard batch does to
a curve is then shared by all of them, and no part of the noise that a difference must stand out from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.emulated_dtypes import emulated
from rlaudit.engines.vllm.expected_engine import ExpectedEngine, expected_engine
from rlaudit.errors import UsageError
from rlaudit.laboratory.engine_cell import engine_variables, usual_engine_args
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.studies.canary.recipe import CanaryRecipe, TrainingArm, WeightHandover
from rlaudit.laboratory.study import Cost, EngineWanted
from rlaudit.vllm.machine import Machine

# Seconds with the default model and training on 2 quiet cores, measured.
START_SECONDS = {"cpu": 25.0, "cuda": 60.0}
# A step of 256 sequences of 6 tokens; most of it is the engine.
STEP_SECONDS = {"cpu": 0.8, "cuda": 0.5}
SEQUENCES = 256
# How much longer a training in a dtype takes that the processor emulates: 145 s against 45 s with AVX2 only.
EMULATED_TIMES = 3.2
# Sampled once; trained on forward, and backward for twice that. Prompts are trained on as well.
PASSES_OF_A_STEP = 8


@dataclass(frozen=True)
class TrainingRun:
    """One arm with one seed."""

    arm: TrainingArm
    seed: int

    @property
    def name(self) -> str:
        """The arm and the seed."""
        return f"{self.arm.name}, seed {self.seed}"


@dataclass(frozen=True)
class CanaryPlan:
    """The trainings of a recipe, in the order in which they run. in_text: whether a prompt was more than token ids."""

    recipe: CanaryRecipe
    runs: tuple[TrainingRun, ...]
    answers: tuple[Any, ...]
    in_text: bool
    device: str
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What is run, in two words."""
        return f"{len(self.runs)} trainings"

    @property
    def engines(self) -> tuple[EngineWanted, ...]:
        """The engine of every training."""
        return tuple(EngineWanted(run.name, run.arm.version, self.engine_args(run.arm)) for run in self.runs)

    @property
    def scoring(self) -> tuple[ScoringRequest, ...]:
        """Nothing is scored afterwards: the trainer is part of every cell."""
        return ()

    def arms(self) -> list[dict[str, str]]:
        """Return the trainings as plan.json names them."""
        reference = self.recipe.arms[0].name
        return [
            {
                "block": "canary",
                "name": run.name,
                "role": "reference" if run.arm.name == reference else "candidate",
                "version": run.arm.version,
            }
            for run in self.runs
        ]

    def engine_args(self, arm: TrainingArm) -> dict[str, Any]:
        """Arguments of the arm's engine."""
        usual = usual_engine_args(arm.version, self.recipe.dtype, self.device)
        return {**usual, **self.recipe.engine_args, **arm.engine_args}

    def variables(self, arm: TrainingArm) -> dict[str, str]:
        """Environment variables of the arm's engine process."""
        written = {**self.recipe.environment_variables, **arm.environment_variables}
        arguments = self.engine_args(arm)
        return engine_variables(self.device, arm.version, arm.engine, arguments, written, fp32_head=arm.fp32_head)

    def expected(self, arm: TrainingArm, machine: Machine, model: str | None = None) -> ExpectedEngine:
        """Return the engine, V0 or V1, that the arm is about on this machine."""
        return expected_engine(arm.version, arm.engine, self.engine_args(arm), self.variables(arm), machine, model)


def plan_trainings(recipe: CanaryRecipe, accelerator: Accelerator, prompts: PromptSet) -> CanaryPlan:
    """Return the trainings of a recipe on this machine. Raises UsageError if a prompt has no answer."""
    if not prompts.answers or any(answer is None for answer in prompts.answers):
        raise UsageError(
            f"the prompts {prompts.name} have no answers to reward",
            'a training needs a .jsonl file whose lines have an "answer" beside the prompt',
        )
    seeds = range(recipe.seed, recipe.seed + recipe.training.seeds)
    # Before the end, too, every arm has as many seeds as the others, give or take one.
    runs = tuple(TrainingRun(arm, seed) for seed in seeds for arm in recipe.arms)
    in_text = not all(isinstance(prompt, dict) for prompt in prompts.prompts)
    return CanaryPlan(recipe, runs, prompts.answers, in_text, accelerator.kind)


def _handed(updates: WeightHandover) -> str:
    """Return how weights are handed over, if not from disk and in turns."""
    brought = "" if updates.transport == "disk" else f", weights by {updates.transport}"
    return f"{brought}, {updates.lag} ahead" if updates.lag else brought


def cost_of_trainings(plan: CanaryPlan, accelerator: Accelerator, prompts: PromptSet) -> Cost:
    """Return what the trainings will cost, before anything is started: every arm with its engine and its trainings."""
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
