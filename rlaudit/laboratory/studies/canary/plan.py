"""From a recipe to trainings: every arm once for each seed, all arms with the first seed first.

Seeds differ in what is sampled. Every training has the same prompts in the same order: the effect of a hard batch on a
curve is then the same in all of them, and not part of the noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.errors import UsageError
from rlaudit.laboratory.engine_cell import usual_engine_args
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.studies.canary.recipe import CanaryRecipe, TrainingArm
from rlaudit.laboratory.study import EngineWanted


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
    """The trainings of a recipe, in the order in which they run."""

    recipe: CanaryRecipe
    runs: tuple[TrainingRun, ...]
    answers: tuple[Any, ...]
    # Whether a prompt is more than token ids.
    in_text: bool
    device: str
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The experiment in two words."""
        return f"{len(self.runs)} trainings"

    @property
    def engines(self) -> tuple[EngineWanted, ...]:
        """The engine of every training."""
        return tuple(self.engine(run.arm, run.name) for run in self.runs)

    @property
    def indispensable(self) -> tuple[str, ...]:
        """Empty: each engine is compared with the trainer."""
        return ()

    @property
    def scoring(self) -> tuple[ScoringRequest, ...]:
        """Empty: the trainer is part of every cell."""
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

    def engine(self, arm: TrainingArm, who: str = "") -> EngineWanted:
        """Return the engine of an arm."""
        usual = usual_engine_args(arm.version, self.recipe.dtype, self.device)
        return EngineWanted(
            who or arm.name,
            arm.version,
            {**usual, **self.recipe.engine_args, **arm.engine_args},
            engine=arm.engine,
            written={**self.recipe.environment_variables, **arm.environment_variables},
            fp32_head=arm.fp32_head,
        )


def plan_trainings(recipe: CanaryRecipe, accelerator: Accelerator, prompts: PromptSet) -> CanaryPlan:
    """Return the trainings of a recipe on this machine. Raises UsageError if a prompt has no answer."""
    if not prompts.answers or any(answer is None for answer in prompts.answers):
        raise UsageError(
            f"the prompts {prompts.name} have no answers to reward",
            'a training needs a .jsonl file whose lines have an "answer" beside the prompt',
        )
    seeds = range(recipe.seed, recipe.seed + recipe.training.seeds)
    # At any time every arm has as many finished seeds as the others, give or take one.
    runs = tuple(TrainingRun(arm, seed) for seed in seeds for arm in recipe.arms)
    in_text = not all(isinstance(prompt, dict) for prompt in prompts.prompts)
    return CanaryPlan(recipe, runs, prompts.answers, in_text, accelerator.kind)
