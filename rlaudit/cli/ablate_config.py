"""`rlaudit ablate CONFIG --from X --to Y`: what the audit of a rollout config suspects, tried out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.errors import UsageError
from rlaudit.inspection.files import collect
from rlaudit.inspection.inspect_file import Context, InspectedConfig, inspect_file
from rlaudit.inspection.read_configs import known_dialects
from rlaudit.inspection.selection import known_rules
from rlaudit.inspection.versions import version_named
from rlaudit.laboratory.recipe import RECIPE_SCHEMA
from rlaudit.laboratory.studies.arms.from_config import ConfigExperiment, experiment_from
from rlaudit.laboratory.study import known_studies
from rlaudit.secrets import mask, masked_places
from rlaudit.vllm.machine import Machine
from rlaudit.yaml_file import read_yaml_file


def is_recipe(path: Path) -> bool:
    """Whether a file is a recipe and not a rollout config; a file that is neither is left to the recipe's errors."""
    if path.suffix.lower() not in {".yaml", ".yml"}:
        return not path.is_file()
    try:
        document = read_yaml_file(path)
    except UsageError:
        return True
    if not isinstance(document, dict) or document.get("schema") == RECIPE_SCHEMA:
        return True
    return any(study.key in document for study in known_studies().values())


def experiment_of(
    path: Path, before: str | None, after: str | None, model: str | None, accelerator: Accelerator
) -> ConfigExperiment:
    """Inspect the config and make an experiment of it. Raises UsageError where there is no config, or several."""
    inspected = _inspected(path, before, after, machine_of(accelerator))
    return experiment_from(inspected.audit, inspected.findings, accelerator, model)


def as_yaml(experiment: ConfigExperiment) -> str:
    """The recipe as a file to keep, with what was changed as comments."""
    document: Mapping[str, Any] = mask(dict(experiment.document))
    hidden = [f"{place}: a secret, to be put in again or left out" for place in masked_places(document)]
    said = "".join(f"# {mask(sentence)}\n" for sentence in (*experiment.changed, *hidden))
    return said + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _inspected(path: Path, before: str | None, after: str | None, machine: Machine) -> InspectedConfig:
    collected = collect([str(path)], "", lambda _path: False)
    if not collected.files:
        raise UsageError(f"{path}: {collected.unread[0].reason if collected.unread else 'not found'}")
    sides = [version_named(side) if side is not None else None for side in (before, after)]
    found = inspect_file(collected.files[0], Context(known_rules(), known_dialects(), machine, *sides))
    if found.bugs:
        raise RuntimeError("; ".join(str(bug) for bug in found.bugs))
    if found.unreadable:
        raise UsageError(f"{path}: {found.unreadable}")
    if not found.configs:
        raise UsageError(
            f"{path} is neither a recipe nor a rollout config that rlaudit reads", "see: rlaudit list frameworks"
        )
    if len(found.configs) > 1:
        engines = ", ".join(str(one.audit.config.place or one.audit.config.path) for one in found.configs)
        raise UsageError(
            f"{path} sets up {len(found.configs)} engines ({engines}); an ablation is about one",
            "keep the rollout engine in a file of its own",
        )
    return found.configs[0]
