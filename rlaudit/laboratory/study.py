"""A study: one kind of experiment. All studies run alike (study_run.py).

To add one, add a folder to studies/ whose study.py binds STUDY. It plans and runs; what has finished is judged in
rlaudit/diagnosis.
"""

import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from packaging.version import Version

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.dtypes import ieee_float32
from rlaudit.engines.inside.engine import ENGINE
from rlaudit.engines.inside.expected_engine import ExpectedEngine, expected_engine
from rlaudit.laboratory import studies
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.recipe import AnyRecipe, Profile, read_recipe
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.resolution.engine import EngineKind, variables_for

if TYPE_CHECKING:
    from rlaudit.laboratory.study_run import StudyRun


@dataclass(frozen=True)
class EngineWanted:
    """An engine process that a plan starts."""

    # Its name in sentences.
    who: str
    version: str
    engine_args: Mapping[str, Any]
    # None for the recipe's.
    model: str | None = None
    # V0 or V1; None for the release's default.
    engine: EngineKind | None = None
    # The recipe's environment variables, which win.
    written: Mapping[str, str] = field(default_factory=dict)
    # Whether it computes its head in float32.
    fp32_head: bool = False

    def variables(self, device: str) -> dict[str, str]:
        """Return the environment variables that decide anything, on cuda or cpu."""
        return {
            **(ENGINE.on_cpu if device == "cpu" else {}),
            **(ENGINE.eager_on_cpu if device == "cpu" and self.engine_args.get("enforce_eager") is True else {}),
            **ieee_float32(device, self.engine_args.get("dtype"), self.fp32_head),
            **variables_for(self.engine, Version(self.version)),
            **self.written,
        }

    def expected(self, machine: Machine, model: str | None = None) -> ExpectedEngine:
        """Return the engine, V0 or V1, that is expected to start on a machine with the recipe's model."""
        variables = self.variables(machine.platform)
        return expected_engine(self.version, self.engine, self.engine_args, variables, machine, self.model or model)


class Plan(Protocol):
    """The plan of any study, as a run needs it."""

    @property
    def recipe(self) -> AnyRecipe:
        """The recipe that is planned."""

    @property
    def title(self) -> str:
        """The experiment in two words."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Parts of the recipe that are not run here, and why."""

    @property
    def engines(self) -> Sequence[EngineWanted]:
        """Every engine process, in the order in which they start."""

    @property
    def indispensable(self) -> Collection[str]:
        """The releases without which nothing can be compared."""

    @property
    def scoring(self) -> Sequence[ScoringRequest]:
        """How the trainer will score, as far as known in advance."""

    def arms(self) -> list[dict[str, str]]:
        """Return the engine processes as plan.json names them."""


@dataclass(frozen=True)
class Cost:
    """The work of a plan."""

    # What it starts, for the user.
    lines: list[str]
    engine_starts: int
    # Tokens that engines sample.
    sampled: int
    # Tokens that go through the model, forward or backward; weighted with EMULATED_TIMES in a dtype that is emulated.
    passes: float
    # How often all weights are loaded, sent, written or read back.
    moves: int = 0
    # Billions of weights, if the model's files do not say.
    billions: float = 0.135


# How much longer a pass takes in a dtype that the processor emulates: bfloat16 against float32 with AVX2 only.
EMULATED_TIMES = 20.0


RecipeT = TypeVar("RecipeT", bound=AnyRecipe)
PlanT = TypeVar("PlanT", bound=Plan)
FinishedT = TypeVar("FinishedT")


@dataclass(frozen=True)
class Study(Generic[RecipeT, PlanT, FinishedT]):
    """One kind of experiment."""

    name: str
    # The key that only its recipes have.
    key: str
    # From plain data, its file and cpu or cuda.
    recipe_of: Callable[[dict[str, Any], Path, Profile], RecipeT]
    plan: Callable[[RecipeT, Accelerator, PromptSet], PlanT]
    cost: Callable[[PlanT, Accelerator, PromptSet], Cost]
    # From a plan and its run (study_run.py) to what is judged.
    execute: Callable[[PlanT, "StudyRun"], FinishedT]
    # The same, with a function that gets the unfinished run and returns whether to end it.
    looked_at: Callable[[PlanT, "StudyRun", Callable[[FinishedT], bool]], FinishedT] | None = None


AnyStudy = Study[Any, Any, Any]


def known_studies() -> dict[str, AnyStudy]:
    """Return every study by name."""
    names = [module.name for module in pkgutil.iter_modules(studies.__path__)]
    offers = [importlib.import_module(f"{studies.__name__}.{name}.study").STUDY for name in names]
    return {study.name: study for study in offers}


def load_study(name_or_path: str, profile: Profile) -> tuple[AnyStudy, AnyRecipe, Path]:
    """Return a recipe's study, the recipe, and its file. A recipe without the key of a study is one of arms.

    Raises UsageError if it does not exist or is not valid.
    """
    document, path = read_recipe(name_or_path)
    by_name = known_studies()
    study = next((study for study in by_name.values() if study.key in document), by_name["arms"])
    return study, study.recipe_of(document, path, profile), path


def releases(plan: Plan) -> tuple[str, ...]:
    """Return the vLLM releases that a plan needs, oldest first."""
    return tuple(sorted({engine.version for engine in plan.engines}, key=Version))


def other_models(plan: Plan) -> list[str]:
    """Return the models that some engines have instead of the recipe's."""
    return list(dict.fromkeys(engine.model for engine in plan.engines if engine.model is not None))
