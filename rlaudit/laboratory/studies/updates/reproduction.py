"""The smallest recipe that shows a finding again: one release, one engine start, one case."""

from pathlib import Path

import yaml

from rlaudit.laboratory.studies.updates.cases import OF_MATRIX, CaseKind
from rlaudit.laboratory.studies.updates.judge import JudgedCase
from rlaudit.laboratory.studies.updates.recipe import UpdateRecipe
from rlaudit.laboratory.studies.updates.update_finding import ERROR, WARNING, UpdateFinding
from rlaudit.secrets import mask
from rlaudit.write_atomically import write_atomically


def smallest_recipe(recipe: UpdateRecipe, judged: JudgedCase) -> UpdateRecipe:
    """The recipe with nothing but what this case needs."""
    start, case = judged.record.start, judged.case
    engine = recipe.weight_updates.engines[start.entry]
    matrix = case.kind in OF_MATRIX
    changes = {
        "path": engine.path,
        "modes": [case.mode] if matrix else [],
        "clear_cache": [case.clear_cache] if case.mode != "none" else engine.clear_cache,
        "prefix_caching": [start.levels["prefix-caching"]] if matrix else engine.prefix_caching,
        "async_scheduling": [start.levels["async-scheduling"]] if "async-scheduling" in start.levels else [],
        "in_a_row": engine.in_a_row if case.kind is CaseKind.ROW else 0,
        "other_paths": [start.path] if case.kind in (CaseKind.PATH, CaseKind.PLANTED) else [],
        "planted": list(case.planted),
        "planted_late": list(case.late),
    }
    one = engine.model_copy(update=changes)
    updates = recipe.weight_updates.model_copy(update={"engines": [one]})
    return recipe.model_copy(update={"weight_updates": updates, "description": f"{start.name}: {case.name}"})


def write_reproductions(
    recipe: UpdateRecipe, found: tuple[UpdateFinding, ...], cases: tuple[JudgedCase, ...], folder: Path
) -> dict[UpdateFinding, str]:
    """A recipe file for every error and warning, and the command that runs it."""
    by_name = {judged.where: judged for judged in cases}
    commands: dict[UpdateFinding, str] = {}
    folder.mkdir(parents=True, exist_ok=True)
    serious = [finding for finding in found if finding.severity in (ERROR, WARNING) and finding.case in by_name]
    for number, finding in enumerate(serious, start=1):
        path = folder / f"{number}-{finding.name}.yaml"
        document = smallest_recipe(recipe, by_name[finding.case]).model_dump(mode="json", by_alias=True)
        write_atomically(path, yaml.safe_dump(mask(document), sort_keys=False).encode())
        commands[finding] = f"rlaudit ablate {path}"
    return commands
