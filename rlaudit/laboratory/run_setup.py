"""What a run needs around it: engine environments, the trainer's environment, the model, the accelerator."""

import platform
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import rlaudit
from rlaudit.engines.cells.cell import Cell
from rlaudit.engines.cells.inherited_variables import recorded, secrets_passed, withheld
from rlaudit.engines.cells.launch import Failure, shipped
from rlaudit.engines.engine import Build
from rlaudit.engines.environments.built_meanwhile import built_meanwhile
from rlaudit.engines.environments.environment import ensure, locate
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec, engine_spec
from rlaudit.engines.environments.given_environment import given_environment
from rlaudit.engines.environments.given_interpreters import NONE_GIVEN, GivenInterpreters
from rlaudit.engines.environments.refusals import refuse
from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.hardware.accelerator_identity import accelerator_identity
from rlaudit.engines.hardware.visible_gpus import gpu_variables
from rlaudit.engines.models.model import ModelOnDisk, ensure_model, places_of_model
from rlaudit.engines.models.model_files import ModelFiles, read_model_files
from rlaudit.engines.models.model_identity import model_identity
from rlaudit.engines.models.model_types import choose_trainer
from rlaudit.errors import NotFinished
from rlaudit.files.home import expanded
from rlaudit.laboratory.fit import gpus_to_score, plan_needs, refuse_what_cannot_fit
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.recipe import AnyRecipe
from rlaudit.laboratory.rollout_context import RolloutContext
from rlaudit.laboratory.study import Plan, other_models, releases
from rlaudit.laboratory.trainer import __path__ as trainer_folder
from rlaudit.text.command_line import command_line
from rlaudit.text.progress import Progress, seconds_since

TOKENIZE = Path(trainer_folder[0]) / "tokenize_prompts.py"
TOKENIZE_TIMEOUT_SECONDS = 300.0
# A model that exists takes less; making or fetching one is worth a line.
NOTICED_SECONDS = 5.0


@dataclass(frozen=True)
class RunSetup:
    """Everything that is not the recipe."""

    accelerator: Accelerator
    # By release; a Failure for an engine without a usable environment.
    engines: Mapping[str, Environment | Failure]
    trainer: Environment
    model: ModelOnDisk
    prompts: PromptSet
    set_up_seconds: float
    # Identities of the models that some engines have instead, by their names in the recipe.
    other_models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gpus_to_score: Mapping[str, int] = field(default_factory=dict)
    # The training's own model, if the measured one stands in for it.
    stands_for: str = ""

    @property
    def accelerator_identity(self) -> Mapping[str, Any]:
        """The facts about the accelerator that decide a result."""
        return accelerator_identity(self.accelerator)

    def rollout_context(self, recipe: AnyRecipe, prompt_token_ids: Sequence[Sequence[int]]) -> RolloutContext:
        """Return what all cells share, with the token ids of the prompts."""
        return RolloutContext(
            model=str(self.model.path),
            revision=self.model.revision,
            model_identity=self.model.identity,
            accelerator_identity=self.accelerator_identity,
            device=self.accelerator.kind,
            machine=machine_of(self.accelerator),
            prompt_token_ids=prompt_token_ids,
            trust_remote_code=recipe.trust_remote_code,
            timeout_minutes=recipe.timeout_minutes,
            seed=recipe.seed,
            other_models=self.other_models,
            gpus_to_score=self.gpus_to_score,
            recorded=self.prompts.recorded,
        )

    def provenance(self) -> dict[str, Any]:
        """Return what is needed to repeat the run."""
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "command": command_line(),
            "rlaudit": rlaudit.__version__,
            "rlaudit_commit": own_commit(),
            "platform": platform.platform(),
            "accelerator": asdict(self.accelerator),
            "inherited_variables": recorded(),
            "variables_not_shown": {"passed": secrets_passed(), "withheld": withheld()},
            "model": {**self.model.identity, "source": self.model.source, "stands_for": self.stands_for},
            "prompts": {
                "name": self.prompts.name,
                "count": len(self.prompts.prompts),
                "sha256": self.prompts.digest,
            },
            "environments": {
                name: {
                    "python": shlex.join(environment.command),
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
    folder: Path,
    accelerator: Accelerator,
    prompts: PromptSet,
    progress: Progress,
    given: GivenInterpreters = NONE_GIVEN,
) -> RunSetup:
    """Build or find every environment the plan needs, and the model.

    given: interpreters that replace built environments; they must see the run's `folder`. Raises UsageError if one
    holds something else. Raises NotFinished if the trainer, the model, an indispensable engine or all engines are
    unavailable. Before anything is downloaded, raises NotFinished if this machine cannot run an environment, no
    transformers knows the model, it cannot fit, or an engine cannot be restricted to the chosen GPUs.
    """
    started = time.monotonic()
    files = read_model_files(plan.recipe.model, plan.recipe.revision)
    wanted = environments_wanted(plan, accelerator, files, given)
    refuse(wanted, accelerator)
    refuse_what_cannot_fit(files, plan_needs(plan, accelerator, files))
    *engines_wanted, trainer_wanted = wanted
    if files.unknown and not given.trainer:
        progress.note(f"  {files.name}: {files.unknown}; {trainer_wanted.name} is taken to know it, and it to fit")
    for spec in wanted:
        gpu_variables(accelerator.devices, spec)  # refuses an unusable one before any is built
    model_places = [place for name in (plan.recipe.model, *other_models(plan)) for place in places_of_model(name)]

    def ready(spec: EnvironmentSpec) -> Environment:
        return ready_environment(spec, accelerator, folder, model_places, progress)

    # Given interpreters are checked before anything is built, so that a typing error is reported at once.
    engines: dict[str, Environment | Failure] = {spec.version: ready(spec) for spec in engines_wanted if spec.command}
    to_build = [spec for spec in engines_wanted if not spec.command]
    is_new_machine = not trainer_wanted.command and locate(trainer_wanted) is None
    meanwhile = [spec for spec in to_build if is_new_machine and locate(spec) is None]
    with built_meanwhile(meanwhile):
        trainer = ready(trainer_wanted)
        fetched = time.monotonic()
        with progress.step(f"model {plan.recipe.model}"):
            # From here on a branch of the hub is its current commit: engines and trainer load the same files.
            revision = files.commit or plan.recipe.revision
            model = ensure_model(plan.recipe.model, trainer.spec, progress.update, revision)
            others = {name: model_identity(name, _commit(name)) for name in other_models(plan)}
        if time.monotonic() - fetched > NOTICED_SECONDS:
            progress.note(f"  ready       model {plan.recipe.model}, {seconds_since(fetched)}")
        for spec in meanwhile:
            if locate(spec) is not None:
                progress.note(f"  built       environment {spec.name}, meanwhile")
        problem: NotFinished | None = None
        for spec in to_build:
            if given.by_release:
                progress.note(f"  no --python names vLLM {spec.version}: an environment of rlaudit's own is taken")
            try:
                engines[spec.version] = ready(spec)
            except NotFinished as error:
                if given.by_release:
                    way_out = f"Name an interpreter that holds it, too: --python {spec.version}=COMMAND."
                    raise NotFinished(f"vLLM {spec.version}: {error.message}", way_out) from error
                if spec.version in plan.indispensable:
                    raise NotFinished(f"vLLM {spec.version}: {error.message}", error.hint) from error
                problem = error
                engines[spec.version] = Failure("environment", error.message)
                progress.note(f"  failed      vLLM {spec.version}: {error.message}")
    if problem is not None and not any(isinstance(engine, Environment) for engine in engines.values()):
        raise problem
    seconds = time.monotonic() - started
    scored_on = gpus_to_score(accelerator, files)
    return RunSetup(accelerator, engines, trainer, model, prompts, seconds, others, scored_on, plan.recipe.stands_for)


def environments_wanted(
    plan: Plan, accelerator: Accelerator, files: ModelFiles, given: GivenInterpreters = NONE_GIVEN
) -> list[EnvironmentSpec]:
    """Return the environments of a plan: one for each of its releases, oldest first, and the trainer's last.

    Raises UsageError for an interpreter that is given for no release of the plan, and what choose_trainer raises.
    """
    wanted = releases(plan)
    commands = given.for_releases(wanted)
    build: Build = accelerator.kind
    engines = [engine_spec(version, build, commands.get(version, ())) for version in wanted]
    trust = plan.recipe.trust_remote_code
    return [*engines, choose_trainer(files, accelerator, given.trainer, trust_remote_code=trust)]


def _commit(model: str) -> str | None:
    """Return the commit of a hub id, if known; None for a path on this machine."""
    return None if expanded(model).exists() else read_model_files(model).commit


def ready_environment(
    spec: EnvironmentSpec, accelerator: Accelerator, folder: Path, read: Sequence[Path], progress: Progress
) -> Environment:
    """Return the environment, checked or built, with the variables that restrict it to the accelerator's GPUs.

    folder: where the cells write. read: the paths that they read.
    """
    if spec.command:
        # A trainer may be of any release.
        release = spec.version if spec.is_engine else None
        with progress.step(f"asking {shlex.join(spec.command)} what it holds"):
            environment = given_environment(spec.holds, spec.command, release, spec.build, folder, read)
    else:
        started = time.monotonic()
        with progress.step(f"environment {spec.name}"):
            environment = ensure(spec, progress.update)
        if time.monotonic() - started > 2.0:
            progress.note(f"  built       environment {spec.name}, {seconds_since(started)}")
    return replace(environment, variables={**environment.variables, **gpu_variables(accelerator.devices, spec)})


def tokenize_cell(
    model: ModelOnDisk,
    environment: Environment,
    prompts: PromptSet,
    *,
    trust_remote_code: bool = False,
    shapes: Mapping[str, Any] = MappingProxyType({}),
) -> Cell:
    """Return the job that turns prompts, and shapes of conversations, into token ids."""
    return Cell(
        job={
            "script": shipped(TOKENIZE),
            "model": str(model.path),
            "revision": model.revision,
            "trust_remote_code": trust_remote_code,
            "prompts": list(prompts.prompts),
            **({"shapes": dict(shapes)} if shapes else {}),
        },
        command=environment.command,
        variables=dict(environment.variables),
        timeout_seconds=TOKENIZE_TIMEOUT_SECONDS,
        identity={"lock": list(environment.lock), "weights": model.weight_hash, "files": model.files_hash},
        gpus=1,
    )


def own_commit() -> str | None:
    """Return the commit of rlaudit's checkout, marked if the checkout has changes; None outside a checkout."""
    checkout = Path(rlaudit.__file__).resolve().parent.parent
    if not (checkout / ".git").exists():
        return None
    try:
        description = subprocess.run(
            ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return description.stdout.strip()
