"""The recipe of a canary: a training, and the arms whose engines sample for it.

A recipe with the key `training` is one of these. The first arm is the reference: the others are judged by the band of
its seeds. An arm is an engine, a way to hand weights to it, and a trainer; everything else is the same in all.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from rlaudit.engines.inside.expected_engine import check_engine
from rlaudit.errors import UsageError
from rlaudit.laboratory.recipe import (
    AnyRecipe,
    DtypeName,
    Engine,
    Keys,
    Profile,
    Version,
    validated,
    with_profile,
)
from rlaudit.laboratory.trainer import __path__ as trainer_folder
from rlaudit.laboratory.weight_path import Transport, WeightPath, check_path
from rlaudit.settings.trainer_facts import PauseMode

TRAINER = Path(trainer_folder[0])


def _shipped(kind: str) -> Callable[[str], str]:
    """Return a validator of the names of files in the trainer's folder of this kind."""

    def check(name: str) -> str:
        offered = sorted(file.stem for file in (TRAINER / f"{kind}s").glob("[a-z]*.py"))
        if name not in offered:
            raise ValueError(f"there is no {kind} {name!r}; there are {', '.join(offered)}")
        return name

    return check


def _reward(name: str) -> str:
    """Accept a shipped reward, or a Python file, which is run only because it is named."""
    if not name.endswith(".py"):
        return _shipped("reward")(name)
    if not Path(name).is_file():
        raise ValueError(f"there is no file {name}")
    return name


def reward_file(name: str) -> Path:
    """Return the file of a reward, shipped or the user's."""
    return Path(name) if name.endswith(".py") else TRAINER / "rewards" / f"{name}.py"


Correction = Annotated[str, AfterValidator(_shipped("correction"))] | None


class Training(Keys):
    """The training, which is the same in all arms. It takes one gradient step on each batch of rollouts."""

    steps: int = Field(30, ge=20, description="Gradient steps; a curve is judged from 20 on.")
    seeds: int = Field(3, ge=1, description="Trainings of each arm. One seed of the reference has no measured band.")
    prompts_per_step: int = Field(16, ge=1, description="Prompts of a batch.")
    samples: int = Field(8, ge=2, description="Completions per prompt: the group of its advantages.")
    max_tokens: int = Field(6, ge=1, description="Longest completion, in tokens.")
    ignore_eos: bool = Field(True, description="Go on past the end-of-sequence token.")
    temperature: float = Field(0.7, gt=0, le=10, description="Sampling temperature.")
    learning_rate: float = Field(1e-4, gt=0, description="Of AdamW.")
    objective: Annotated[str, AfterValidator(_shipped("objective"))] = Field(
        "gspo", description="gspo, grpo or ppo; its clip range is in the recipe's objective."
    )
    correction: Correction = Field(None, description="tis, mis or icepop; none takes the rollout's logprobs as old.")
    correction_limit: float = Field(2.0, gt=1, description="Largest weight, or edge of the mask, of a correction.")
    reward: Annotated[str, AfterValidator(_reward)] = Field(
        "token_share",
        description="token_share, exact_match, last_number, or a Python file with reward(token_ids, text, answer).",
    )


class WeightHandover(Keys):
    """How new weights reach the engine."""

    transport: Transport = Field(
        "disk",
        description="What brings the weights: a file on disk, or the trainer by broadcast, parameter by parameter.",
    )
    path: WeightPath | None = Field(
        None,
        description="How the worker loads them. Unset: reload_weights from disk, load_weights on V0 and for what comes "
        "from another process, reload_from_iterator for that on CPU builds.",
    )
    mode: PauseMode = Field(PauseMode.WAIT, description="How the engine is paused meanwhile.")
    clear_cache: bool = Field(True, description="pause_generation's clear_cache.")
    reset_cache: bool = Field(False, description="Call reset_prefix_cache after the load.")
    every: int = Field(1, ge=1, description="Steps between two updates; more than 1 is lag, and logged as lag.")
    lag: int = Field(
        0,
        ge=0,
        description="Batches that are begun ahead of the one that is trained on: updates then meet them in flight, and "
        "no token is older than that many updates. 0: engine and trainer take turns.",
    )
    planted: list[str] = Field(
        default_factory=list, description="Parts of tensor names that no update loads: the audit has to find out."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        check_path(self.path, self.transport)
        if self.lag and self.mode is PauseMode.ABORT:
            raise ValueError("mode: abort ends the requests that lag keeps in flight; write keep or wait")
        if self.planted and self.transport == "disk" and self.path in (None, "reload_weights"):
            raise ValueError("reload_weights reads all of a folder; planted needs another path, such as load_weights")
        return self


class ArmTrainer(Keys):
    """The trainer's forward pass."""

    dtype: DtypeName = Field("float32", description="Dtype of the body; master weights are float32.")
    head_dtype: Literal["same", "float32", "bfloat16", "float16"] = Field("same", description="Dtype of the head.")
    temperature: Literal["divide", "ignore"] = Field(
        "divide", description="Whether its logits are divided by the sampling temperature."
    )


class TrainingArm(Keys):
    """One engine that samples for the training."""

    name: str = Field(description="What the arm is called in the report.")
    version: Version = Field(description="vLLM release, such as 0.18.1.")
    engine: Engine = None
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments on top of the recipe's.")
    environment_variables: dict[str, str] = Field(default_factory=dict, description="Variables of this arm only.")
    fp32_head: bool = Field(False, description="The engine computes its logits in float32.")
    trainer: ArmTrainer = Field(default_factory=ArmTrainer, description="The trainer's forward pass.")
    updates: WeightHandover = Field(default_factory=WeightHandover, description="How weights are handed over.")
    correction: Correction = Field(None, description="Another correction than the training's.")


class Claim(Keys):
    """A sentence to be tested: an arm differs, or does not differ, from the reference in one metric."""

    says: str = Field(description="The claim in words.")
    arm: str = Field(description="The arm it is about.")
    metric: str = Field(description="A key of metrics.jsonl, or `any`.")
    expects: Literal["separated", "not separated"] = Field(description="What the claim comes to.")


class Quick(Keys):
    """The short form: fewer arms, each with fewer seeds."""

    arms: list[str] = Field(min_length=2, description="Names of arms, the reference first.")
    seeds: int = Field(1, ge=1, description="Trainings of each arm.")
    steps: int | None = Field(None, ge=20, description="Gradient steps; unset: as many.")


class CanaryRecipe(AnyRecipe):
    """A recipe whose question is answered by short trainings."""

    model: str = Field("running-sums", description="running-sums is trained here in a minute; a path, or a hub id.")
    prompts: str = Field("running-sums", description="A .jsonl file whose prompts have an `answer`.")
    training: Training = Field(description="The training; this key makes a recipe one of these.")
    dtype: DtypeName = Field("float32", description="Dtype of the engines, unless an arm says otherwise.")
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments of every arm.")
    environment_variables: dict[str, str] = Field(default_factory=dict, description="Variables of every engine.")
    arms: list[TrainingArm] = Field(min_length=2, description="The reference first.")
    quick: Quick | None = Field(None, description="What --quick runs.")
    claims: list[Claim] = Field(default_factory=list, description="What is said of such a migration, to be tested.")
    alpha: float = Field(0.05, gt=0, lt=0.5, description="Chance of a false alarm in the report of an arm.")

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [arm.name for arm in self.arms]
        if len(set(names)) != len(names):
            raise ValueError("two arms have one name")
        referenced = [*(claim.arm for claim in self.claims), *(self.quick.arms if self.quick else ())]
        for name in referenced:
            if name not in names:
                raise ValueError(f"{name!r} is no arm of this recipe")
        if self.equivalence_margin is not None:
            raise ValueError("equivalence_margin has no effect here: the band of the reference's seeds decides")
        return self

    def quickened(self) -> Self:
        """Return the recipe's short form. Raises UsageError if it has none."""
        if self.quick is None:
            return super().quickened()
        quick = self.quick
        steps = quick.steps or self.training.steps
        changes = {
            "training": self.training.model_copy(update={"seeds": quick.seeds, "steps": steps}),
            "arms": [arm for name in quick.arms for arm in self.arms if arm.name == name],
            "claims": [claim for claim in self.claims if claim.arm in quick.arms],
        }
        return self.model_copy(update=changes)

    def overridden(self, *, samples: int | None = None, **options: Any) -> "CanaryRecipe":
        """Return the recipe with the options of the command line in place of its own."""
        changed = super().overridden(**options)
        if samples is None:
            return changed
        if samples < 2:
            raise UsageError("a group of one sample has no advantage", "--samples 2 or more")
        return changed.model_copy(update={"training": changed.training.model_copy(update={"samples": samples})})


MODELS = (CanaryRecipe, Training, TrainingArm, WeightHandover, ArmTrainer, Quick, Claim)


def training_recipe_of(document: dict[str, Any], path: Path, profile: Profile = "cuda") -> CanaryRecipe:
    """Return the recipe of plain data. Raises UsageError naming `path` and the wrong key."""
    recipe = validated(CanaryRecipe, with_profile(document, profile), path, MODELS)
    for arm in recipe.arms:
        check_engine(arm.engine, arm.version, {**recipe.environment_variables, **arm.environment_variables}, str(path))
    return recipe
