"""The recipe of a weight-update audit: which engines, and which ways to pause and load.

A recipe with the key `weight_updates` is one of these. It shares the file format, the profiles (`cpu:`) and the names
of keys with an ablation recipe. Several sets of weights pass through each engine, and every token is scored with those
that should have sampled it.
"""

from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from rlaudit.engines.inside.expected_engine import check_engine
from rlaudit.laboratory.recipe import (
    AnyRecipe,
    DtypeName,
    Engine,
    Keys,
    Level,
    Profile,
    Version,
    validated,
    with_profile,
)
from rlaudit.laboratory.weight_path import AdapterWay, Transport, WeightPath, check_path
from rlaudit.settings.trainer_facts import PauseMode


class EngineToUpdate(Keys):
    """One vLLM release and what is tried on it.

    Every combination of the caching and scheduling levels is one engine start; every combination of modes and
    clear_cache is one case in each of them, and so is every mode with salted requests.
    """

    version: Version = Field(description="vLLM release, such as 0.18.1.")
    engine: Engine = None
    transport: Transport = Field(
        "disk",
        description="What brings the weights: files on disk, or a broadcast, parameter by parameter.",
    )
    path: WeightPath | None = Field(
        None,
        description="How weights are loaded. Unset: reload_weights from disk; else load_weights, and on "
        "CPU builds, which pack weights, reload_from_iterator.",
    )
    modes: list[PauseMode] = Field(
        [PauseMode.KEEP, PauseMode.WAIT, PauseMode.ABORT],
        description="Ways to pause; none loads between two steps without a pause.",
    )
    clear_cache: list[bool] = Field([True, False], description="Values of pause_generation's clear_cache.")
    salted: bool = Field(
        False,
        description="Also: nothing is cleared, and each request's cache_salt is the version of the weights.",
    )
    prefix_caching: list[Level] = Field(["on", "off"], description="Levels of enable_prefix_caching.")
    async_scheduling: list[Level] = Field(
        default_factory=list, description="Levels of async_scheduling; empty leaves the release's own."
    )
    adapters: list[AdapterWay] = Field(
        default_factory=list,
        description="Also, in another engine: a LoRA adapter after another. Each has a new name and number; a "
        "new number under one name; or one name and number, loaded again in place or not (same).",
    )
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments on top of the recipe's.")

    @model_validator(mode="after")
    def _loadable(self) -> Self:
        check_path(self.path, self.transport)
        return self


class WeightUpdates(Keys):
    """What is updated, with what, and how much is sampled around it."""

    engines: list[EngineToUpdate] = Field(min_length=1, description="The releases.")
    perturbation: float = Field(
        0.02, gt=0, lt=1, description="Step between two versions: normal noise, as a share of each tensor's rms."
    )
    checkpoint: str | None = Field(None, description="Your checkpoint as the next version, instead of noise.")
    flight_tokens: int = Field(12, ge=6, description="Length of the completions that an update meets in flight.")
    after_tokens: int = Field(8, ge=2, description="Length of the completions before and after an update.")
    samples: int = Field(2, ge=1, description="Completions per prompt in the runs that are compared.")
    drain_seconds: float = Field(90.0, gt=0, description="A request or call that takes longer is lost.")


class UpdateRecipe(AnyRecipe):
    """A recipe whose question is about weight updates."""

    prompts: str = Field("openings", description="A prompt set by name, a .txt or a .jsonl file.")
    prompts_used: int | None = Field(None, ge=1, description="How many prompts of the file.")
    seed: int = Field(0, ge=0, description="Seed of sampling, noise and bootstrap.")
    dtype: DtypeName = Field("float32", description="Dtype of engine and trainer.")
    equivalence_margin: float = Field(1e-3, gt=0, description="k3 in nats below which logprobs count as the same.")
    timeout_minutes: float = Field(10.0, gt=0, description="Longest life of one engine process.")
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine arguments of every start.")
    environment_variables: dict[str, str] = Field(default_factory=dict, description="Variables of every engine.")
    weight_updates: WeightUpdates = Field(description="The updates; this key makes a recipe one of these.")

    @property
    def prompts_read(self) -> int | None:
        """How many prompts of the set a run reads; None for all."""
        return self.prompts_used

    def overridden(self, *, samples: int | None = None, **options: Any) -> "UpdateRecipe":
        """Return the recipe with the options of the command line in place of its own."""
        changed = super().overridden(**options)
        if samples is None:
            return changed
        updates = changed.weight_updates.model_copy(update={"samples": samples})
        return changed.model_copy(update={"weight_updates": updates})


MODELS = (UpdateRecipe, WeightUpdates, EngineToUpdate)


def update_recipe_of(document: dict[str, Any], path: Path, profile: Profile = "cuda") -> UpdateRecipe:
    """Return the recipe of plain data. Raises UsageError naming `path` and the wrong key."""
    plain = with_profile(document, profile)
    recipe = validated(UpdateRecipe, plain, path, MODELS)
    for engine in recipe.weight_updates.engines:
        check_engine(engine.engine, engine.version, recipe.environment_variables, str(path))
    return recipe
