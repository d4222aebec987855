"""Several runs merged into one: the union of their cells, under the plan that they have in common.

Nothing is run, and the machine does not matter: what a cell depends on is read from plan.json, so that runs of GPUs can
be merged on a machine without one. Runs whose cells could not be one run's are refused: those with another recipe,
other prompts or weights, other packages, another kind of GPU or driver.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rlaudit.engines.cells.cell import adopt
from rlaudit.engines.cells.executor import Asked, OnEvent, unheard
from rlaudit.engines.cells.launch import Failure, Outcome
from rlaudit.engines.environments.environment_spec import Environment, EnvironmentSpec
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.models.model import ModelOnDisk
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory.prompts import PromptSet, load_prompts
from rlaudit.laboratory.run_folder import CELL_FOLDERS, PLAN, is_run
from rlaudit.laboratory.run_setup import RunSetup
from rlaudit.laboratory.study import Study, known_studies
from rlaudit.parse_json import parse_json

ENGINE_PREFIX, TRAINER = "vllm ", "trainer"


@dataclass(frozen=True)
class Planned:
    """What several runs have in common. `runs` are their folders, `document` is plan.json of the first."""

    runs: tuple[Path, ...]
    document: Mapping[str, Any]
    study: Study
    plan: Any
    prompts: PromptSet
    accelerator: Accelerator

    @property
    def cells(self) -> tuple[Path, ...]:
        """Where their cells lie."""
        return tuple(run / CELL_FOLDERS for run in self.runs)

    def setup(self) -> RunSetup:
        """Return what was around the cells when they ran; a cell that none of the runs has is not run."""
        provenance, made_with = self.document["provenance"], self.document["made_with"]
        environments = {
            name: _environment(made_with["environments"][name], told)
            for name, told in provenance["environments"].items()
        }
        engines: dict[str, Environment | Failure] = {
            name.removeprefix(ENGINE_PREFIX): one for name, one in environments.items() if name != TRAINER
        }
        engines |= {version: Failure(**failure) for version, failure in made_with["failed"].items()}
        model = provenance["model"]
        return RunSetup(
            accelerator=self.accelerator,
            engines=engines,
            trainer=environments[TRAINER],
            model=ModelOnDisk(
                model["path"], model["revision"], model["weights"], model["source"], files_hash=model["files"]
            ),
            prompts=self.prompts,
            set_up_seconds=0.0,
            other_models=made_with["other_models"],
            written=self.document,
        )


def planned(runs: Sequence[Path]) -> Planned:
    """Return what the runs have in common. Raises UsageError for what is no run, NotFinished for runs that do not
    belong together, and for prompts that are not those that were asked."""
    first, *others = documents = [_plan_of(run) for run in runs]
    for run, other in zip(runs[1:], others, strict=True):
        difference = next(_differences(first, other), None)
        if difference is not None:
            raise NotFinished(
                f"{runs[0]} and {run} are not of one run: {difference}",
                "Merge runs of one recipe, release and kind of machine.",
            )
    document = documents[0]
    accelerator = Accelerator.of_document(document["provenance"]["accelerator"])
    study = next((study for study in known_studies().values() if study.key in document["recipe"]), None)
    if study is None:
        raise NotFinished(
            f"{runs[0] / PLAN} is of a study that this rlaudit does not know", "Merge with the release that ran."
        )
    recipe = study.recipe_of(dict(document["recipe"]), runs[0] / PLAN, accelerator.kind)
    prompts = load_prompts(recipe.prompts, recipe.prompts_read)
    if prompts.digest != document["provenance"]["prompts"]["sha256"]:
        raise NotFinished(
            f"the prompts {recipe.prompts} are not those that {runs[0]} asked",
            "They were changed since: put the old ones back, or run again.",
        )
    plan = study.plan(recipe, accelerator, prompts)
    return Planned(tuple(runs), document, study, plan, prompts, accelerator)


def _plan_of(run: Path) -> dict[str, Any]:
    if not is_run(run):
        raise UsageError(f"{run} is no run directory", "Give the directories that ablate --shard left.")
    try:
        document = parse_json((run / PLAN).read_bytes())
        return {key: document[key] for key in ("recipe", "arms", "provenance", "made_with")}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotFinished(
            f"{run / PLAN} is missing, broken, or of a release that could not be merged", "Run its cells again."
        ) from error


def _differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps the cells of two plans from being those of one run, in words."""
    for what, key in (("recipes", "recipe"), ("arms", "arms")):
        if first[key] != other[key]:
            yield f"their {what} differ"
    before, after = (one["made_with"] for one in (first, other))
    if before["accelerator_identity"] != after["accelerator_identity"]:
        names = [one["provenance"]["accelerator"]["name"] for one in (first, other)]
        said = (
            f"{names[0]} and {names[1]}" if names[0] != names[1] else f"two {names[0]} with other drivers or variables"
        )
        yield f"they ran on {said}"
    for key, what in (("model", "weights"), ("prompts", "prompts")):
        if first["provenance"][key] != other["provenance"][key]:
            yield f"their {what} differ"
    for key in ("environments", "failed", "other_models"):
        if before[key] != after[key]:
            yield f"their {key.replace('_', ' ')} differ"
    for name, one in first["provenance"]["environments"].items():
        if one["lock"] != other["provenance"]["environments"][name]["lock"]:
            yield f"{name} holds other packages"


def _environment(spec: Mapping[str, Any], told: Mapping[str, Any]) -> Environment:
    command = tuple(shlex.split(told["python"]))
    return Environment(
        spec=EnvironmentSpec(**{**spec, "command": tuple(spec["command"])}),
        directory=Path(command[0]).parent,
        command=command,
        variables=told["variables"],
        lock=tuple(told["lock"]),
        notes=tuple(told["notes"]),
        versions=told["versions"],
    )


@dataclass(frozen=True)
class FromRuns:
    """Runs nothing: a cell that failed in one of the runs is the failure it was, one that is in none is missing."""

    folder: Path
    runs: Sequence[Path]

    def run(self, asked: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Look for what is left of cells that are not finished. Raises NotFinished naming those that are in no run."""
        outcomes = [adopt(self.folder, one.cell, self.runs, failed=True) for one in asked]
        missing = [one.title for one, outcome in zip(asked, outcomes, strict=True) if outcome is None]
        for outcome in outcomes:
            if outcome is None:
                raise NotFinished(
                    f"{len(missing)} cell{'s' * (len(missing) > 1)} of the plan "
                    f"{'are' if len(missing) > 1 else 'is'} in none of the runs: {'; '.join(missing)}",
                    f"What is there lies in {self.folder.parent} now: the ablate command of the runs with "
                    f"--run-dir {self.folder.parent} goes on from it.",
                )
            yield outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing was begun."""
