"""A study: one kind of experiment, and what only it can say. All are run alike (study_run.py).

To add one, add a folder to studies/ whose study.py binds STUDY. What the figures of a finished run mean is judged above
the laboratory, by the caller that requested the run.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from packaging.version import Version

from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.dtypes import ieee_float32
from rlaudit.engines.vllm.engine import ENGINE
from rlaudit.engines.vllm.expected_engine import ExpectedEngine, expected_engine
from rlaudit.laboratory import studies
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.recipe import AnyRecipe, Profile, read_recipe
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.vllm.machine import Machine
from rlaudit.vllm.resolution.engine import EngineKind, variables_for


@dataclass(frozen=True)
class EngineWanted:
    """An engine process that a plan starts. `who` names it in sentences.

    model: another one than the recipe's. engine: V0 or V1; None for the one that the release starts. written: the
    recipe's environment variables, which win. fp32_head: whether it computes its head in float32.
    """

    who: str
    version: str
    engine_args: Mapping[str, Any]
    model: str | None = None
    engine: EngineKind | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    fp32_head: bool = False

    def variables(self, device: str) -> dict[str, str]:
        """Return the environment variables that decide anything, on cuda or cpu."""
        return {
            **(ENGINE.on_cpu if device == "cpu" else {}),
            **ieee_float32(device, self.engine_args.get("dtype"), self.fp32_head),
            **variables_for(self.engine, Version(self.version)),
            **self.written,
        }

    def expected(self, machine: Machine, model: str | None = None) -> ExpectedEngine:
        """Return the engine, V0 or V1, that this is about on a machine, with the recipe's model."""
        variables = self.variables(machine.platform)
        return expected_engine(self.version, self.engine, self.engine_args, variables, machine, self.model or model)


class Plan(Protocol):
    """What a run has to know of any study's plan."""

    @property
    def recipe(self) -> AnyRecipe:
        """What was asked for."""

    @property
    def title(self) -> str:
        """What is run, in two words."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Parts of the recipe that are not run here, and why."""

    @property
    def engines(self) -> Sequence[EngineWanted]:
        """Every engine process, in the order in which they start."""

    @property
    def scoring(self) -> Sequence[ScoringRequest]:
        """How the trainer will score, as far as it is known before anything ran."""

    def arms(self) -> list[dict[str, str]]:
        """Return the engine processes as plan.json names them."""


@dataclass(frozen=True)
class Cost:
    """What a plan starts, as lines, how many engines that is, and what they and the trainer do.

    sampled: tokens. passes: tokens that go through the model, forward or backward, those in a dtype that the processor
    emulates as often as they take longer. moves: how often all weights are loaded, sent, written or read back.
    billions: weights of the model if its files do not say.
    """

    lines: list[str]
    engine_starts: int
    sampled: int
    passes: float
    moves: int = 0
    billions: float = 0.135


# How much longer a pass takes in a dtype that the processor emulates: bfloat16 against float32 with AVX2 only.
EMULATED_TIMES = 20.0


@dataclass(frozen=True)
class Study:
    """One kind of experiment.

    key: what only its recipes have. recipe_of: plain data, its file and cpu or cuda to a recipe. plan: the recipe on
    this machine with these prompts. cost: what a plan starts and how long that takes. execute: the plan
    carried out by a run (study_run.py), as a diagnosis needs it. in_one_folder: its
    cells read files of the run directory, and are those of no other. looks: whether `execute` takes a function that is
    shown the run as far as it is.
    """

    name: str
    key: str
    recipe_of: Callable[[dict[str, Any], Path, Profile], AnyRecipe]
    plan: Callable[[Any, Accelerator, PromptSet], Any]
    cost: Callable[[Any, Accelerator, PromptSet], Cost]
    execute: Callable[..., Any]
    in_one_folder: bool = False
    looks: bool = False


def known_studies() -> dict[str, Study]:
    """Return every study there is a folder for, by name."""
    names = [found.name for found in pkgutil.iter_modules(studies.__path__)]
    offers = [importlib.import_module(f"{studies.__name__}.{name}.study").STUDY for name in names]
    return {study.name: study for study in offers}


def load_study(name_or_path: str, profile: Profile) -> tuple[Study, AnyRecipe, Path]:
    """Return a recipe's study, the recipe, and its file. A recipe with no study's key is read as one of arms.

    Raises UsageError if there is no such recipe, or one that is not valid.
    """
    document, path = read_recipe(name_or_path)
    known = known_studies()
    study = next((study for study in known.values() if study.key in document), known["arms"])
    return study, study.recipe_of(document, path, profile), path


def releases(plan: Plan) -> tuple[str, ...]:
    """Return the vLLM releases that a plan needs, oldest first."""
    return tuple(sorted({engine.version for engine in plan.engines}, key=Version))


def other_models(plan: Plan) -> list[str]:
    """Return the models that some engines have instead of the recipe's."""
    return list(dict.fromkeys(engine.model for engine in plan.engines if engine.model is not None))
