"""What a run needs around it: engine environments, the trainer's environment, the model, the accelerator."""

import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import rlaudit
from rlaudit.engines import launch
from rlaudit.engines.accelerator import Accelerator, used_memory_mib, wait_until_memory_is_free
from rlaudit.engines.environment import ensure
from rlaudit.engines.environment_spec import Build, Environment, EnvironmentSpec, trainer_spec
from rlaudit.engines.launch import Failure, Outcome
from rlaudit.engines.model import ModelOnDisk, ensure_model
from rlaudit.errors import NotFinished
from rlaudit.experiment.cell import Cell
from rlaudit.experiment.plan import Plan
from rlaudit.experiment.prompts import PromptSet
from rlaudit.experiment.recipe import Recipe
from rlaudit.experiment.rollout import RolloutContext
from rlaudit.progress import Progress, seconds_since

TOKENIZE = Path(launch.__file__).parent / "scripts" / "tokenize_prompts.py"
TOKENIZE_TIMEOUT_SECONDS = 300.0
MEMORY_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Surroundings:
    """Everything that is not the recipe. An engine that could not be had is a Failure in its place."""

    accelerator: Accelerator
    engines: Mapping[str, Environment | Failure]
    trainer: Environment
    model: ModelOnDisk
    prompts: PromptSet
    memory_in_use_mib: tuple[int, ...]
    set_up_seconds: float

    def rollout_context(self, recipe: Recipe, outcome: Callable[[Cell, str], Outcome]) -> RolloutContext:
        """Token ids of the prompts, which every engine is given alike. Raises NotFinished when they cannot be had."""
        cell = tokenize_cell(recipe, self.model, self.trainer, self.prompts)
        told = outcome(cell, f"tokens of the {len(self.prompts.prompts)} prompts")
        if told.status != "ok":
            why = told.failure.message if told.failure else "no reason given"
            raise NotFinished(f"the tokenizer of {self.model.path} cannot be used: {why}")
        return RolloutContext(
            recipe=recipe,
            model=str(self.model.path),
            model_identity=self.model_identity(),
            accelerator_identity=asdict(self.accelerator),
            device=self.accelerator.kind,
            prompt_token_ids=told.result["prompt_token_ids"],
        )

    def model_identity(self) -> dict[str, Any]:
        """What tells this model from another."""
        return {
            "path": str(self.model.path),
            "revision": self.model.revision,
            "weights": self.model.weight_hash,
        }

    def wait_for_accelerator(self, progress: Progress) -> None:
        """On a GPU, let the last engine's memory go first; says so when it does not."""
        wait = wait_until_memory_is_free(self.accelerator, self.memory_in_use_mib, MEMORY_TIMEOUT_SECONDS)
        if not wait:
            progress.note(
                f"  {max(wait.still_held_mib)} MiB more of the GPU are in use than before the run; starting anyway"
            )

    def provenance(self) -> dict[str, Any]:
        """What is needed to repeat the run."""
        return {
            "rlaudit": rlaudit.__version__,
            "rlaudit_commit": own_commit(),
            "platform": platform.platform(),
            "accelerator": asdict(self.accelerator),
            "model": {**self.model_identity(), "source": self.model.source},
            "prompts": {
                "name": self.prompts.name,
                "count": len(self.prompts.prompts),
                "sha256": self.prompts.digest,
            },
            "environments": {
                name: {
                    "python": str(environment.python),
                    "versions": dict(environment.versions),
                    "variables": dict(environment.variables),
                    "lock": list(environment.lock),
                    "notes": list(environment.notes),
                }
                for name, environment in self._environments().items()
            },
        }

    def _environments(self) -> dict[str, Environment]:
        engines = {f"vllm {version}": engine for version, engine in self.engines.items()}
        return {
            name: engine
            for name, engine in {**engines, "trainer": self.trainer}.items()
            if isinstance(engine, Environment)
        }


def prepare(
    plan: Plan,
    accelerator: Accelerator,
    prompts: PromptSet,
    progress: Progress,
    python: Path | None = None,
    trainer_python: Path | None = None,
) -> Surroundings:
    """Build or find every environment the plan needs, and the model.

    `python` is an interpreter that already holds the plan's only vLLM release, `trainer_python` one with transformers.
    Raises NotFinished when no engine at all, the trainer, or the model could be had.
    """
    started = time.monotonic()
    build: Build = "cuda" if accelerator.kind == "cuda" else "cpu"
    trainer_wanted = EnvironmentSpec("trainer", trainer_spec(build).version, build, trainer_python)
    memory_in_use_mib = used_memory_mib(accelerator)
    trainer = _ensure(trainer_wanted, progress)
    with progress.step(f"model {plan.recipe.model}"):
        model = ensure_model(plan.recipe.model, trainer_wanted, progress.update, plan.recipe.revision)
    engines: dict[str, Environment | Failure] = {}
    problem: NotFinished | None = None
    for version in plan.versions:
        try:
            engines[version] = _ensure(EnvironmentSpec("vllm", version, build, python), progress)
        except NotFinished as error:
            problem = error
            engines[version] = Failure("environment", error.message)
            progress.note(f"  failed      vLLM {version}: {error.message}")
    if problem is not None and not any(isinstance(engine, Environment) for engine in engines.values()):
        raise problem
    return Surroundings(accelerator, engines, trainer, model, prompts, memory_in_use_mib, time.monotonic() - started)


def _ensure(spec: EnvironmentSpec, progress: Progress) -> Environment:
    started = time.monotonic()
    with progress.step(f"environment {spec.name}"):
        environment = ensure(spec, progress.update)
    if time.monotonic() - started > 2.0:
        progress.note(f"  built       environment {spec.name}, {seconds_since(started)}")
    return environment


def tokenize_cell(recipe: Recipe, model: ModelOnDisk, trainer: Environment, prompts: PromptSet) -> Cell:
    """The job that turns prompts into token ids."""
    return Cell(
        job={
            "script": str(TOKENIZE),
            "model": str(model.path),
            "revision": recipe.revision,
            "trust_remote_code": recipe.trust_remote_code,
            "prompts": list(prompts.prompts),
        },
        python=trainer.python,
        variables=dict(trainer.variables),
        timeout_seconds=TOKENIZE_TIMEOUT_SECONDS,
        identity={"lock": list(trainer.lock), "weights": model.weight_hash},
    )


def own_commit() -> str | None:
    """The commit of rlaudit's checkout, with a mark when it was changed since; None outside a checkout."""
    checkout = Path(rlaudit.__file__).resolve().parent.parent
    if not (checkout / ".git").exists():
        return None
    try:
        said = subprocess.run(
            ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip()
