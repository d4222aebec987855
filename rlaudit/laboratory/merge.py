"""Several runs merged into one: the union of their cells, under the plan that they have in common.

Nothing is run, and the machine does not matter: what a cell depends on is read from plan.json, so runs of GPUs can be
merged on a machine without one. Runs that differ in recipe, prompts, weights, packages, kind of GPU or driver are
refused.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """What several runs have in common."""

    # Their folders.
    runs: tuple[Path, ...]
    # plan.json of the first.
    document: Mapping[str, Any]
    study: Study
    plan: Any
    prompts: PromptSet
    accelerator: Accelerator

    @property
    def cells(self) -> tuple[Path, ...]:
        """The folders of their cells."""
        return tuple(run / CELL_FOLDERS for run in self.runs)

    def setup(self) -> RunSetup:
        """Return the setup that the cells ran in."""
        provenance, made_with = self.document["provenance"], self.document["made_with"]
        environments = {
            name: _environment_of(made_with["environments"][name], document)
            for name, document in provenance["environments"].items()
        }
        engines: dict[str, Environment | Failure] = {
            name.removeprefix(ENGINE_PREFIX): environment
            for name, environment in environments.items()
            if name != TRAINER
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
    """Return what the runs have in common.

    Raises UsageError for a folder that is no run, NotFinished for runs that do not belong together, and for a prompts
    file that was changed since.
    """
    first, *others = documents = [_read_plan(run) for run in runs]
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


def _read_plan(run: Path) -> dict[str, Any]:
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
    """Yield the reasons why the cells of two plans cannot belong to one run."""
    for subject, key in (("recipes", "recipe"), ("arms", "arms")):
        if first[key] != other[key]:
            yield f"their {subject} differ"
    before, after = first["made_with"], other["made_with"]
    if before["accelerator_identity"] != after["accelerator_identity"]:
        mine, theirs = (plan["provenance"]["accelerator"]["name"] for plan in (first, other))
        machines = f"{mine} and {theirs}" if mine != theirs else f"two {mine} with other drivers or variables"
        yield f"they ran on {machines}"
    for key, subject in (("model", "weights"), ("prompts", "prompts")):
        if first["provenance"][key] != other["provenance"][key]:
            yield f"their {subject} differ"
    for key in ("environments", "failed", "other_models"):
        if before[key] != after[key]:
            yield f"their {key.replace('_', ' ')} differ"
    for name, environment in first["provenance"]["environments"].items():
        if environment["lock"] != other["provenance"]["environments"][name]["lock"]:
            yield f"{name} holds other packages"


def _environment_of(spec: Mapping[str, Any], document: Mapping[str, Any]) -> Environment:
    command = tuple(shlex.split(document["python"]))
    return Environment(
        spec=EnvironmentSpec(**{**spec, "command": tuple(spec["command"])}),
        directory=Path(command[0]).parent,
        command=command,
        variables=document["variables"],
        lock=tuple(document["lock"]),
        notes=tuple(document["notes"]),
        versions=document["versions"],
    )


@dataclass(frozen=True)
class FromRuns:
    """An executor that runs nothing: cells are taken from the runs, the failed ones as failures."""

    folder: Path
    runs: Sequence[Path]

    def run(self, requests: Sequence[Asked], on_event: OnEvent = unheard) -> Iterator[Outcome]:
        """Take over the outcomes of these cells. Raises NotFinished naming the cells that are in none of the runs."""
        outcomes = [adopt(self.folder, request.cell, self.runs, failed=True) for request in requests]
        missing = [request.title for request, outcome in zip(requests, outcomes, strict=True) if outcome is None]
        for outcome in outcomes:
            if outcome is None:
                raise NotFinished(
                    f"{len(missing)} cell{'s' * (len(missing) > 1)} of the plan "
                    f"{'are' if len(missing) > 1 else 'is'} in none of the runs: {'; '.join(missing)}",
                    f"What is there lies in {self.folder.parent} now: the ablate command of the runs with "
                    f"--run-dir {self.folder.parent} goes on from it.",
                )
            yield outcome
