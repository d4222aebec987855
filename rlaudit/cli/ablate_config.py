"""`rlaudit ablate CONFIG --from X --to Y`: what the audit of a rollout config suspects, tried out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.errors import UsageError
from rlaudit.inspection.inspect import one_config
from rlaudit.laboratory.recipe import RECIPE_SCHEMA
from rlaudit.laboratory.recorded_requests import recorded_requests
from rlaudit.laboratory.studies.arms.from_config import ConfigExperiment, experiment_from
from rlaudit.laboratory.study import known_studies
from rlaudit.recorder.recording import is_recording
from rlaudit.secrets import mask, masked_places
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
    path: Path,
    before: str | None,
    after: str | None,
    model: str | None,
    accelerator: Accelerator,
    repeated: Sequence[str] = (),
) -> ConfigExperiment:
    """Inspect the config or the recording and make an experiment of it.

    repeated: arguments and variables of a recording that are taken over whatever they are. Raises UsageError where
    there is no config, or several.
    """
    inspected = one_config(path, machine_of(accelerator), before, after, "neither a recipe nor a rollout config")
    recorded = recorded_requests(path) if is_recording(path) else None
    return experiment_from(inspected.audit, inspected.findings, accelerator, model, recorded, repeated)


def as_yaml(experiment: ConfigExperiment) -> str:
    """The recipe as a file to keep, with what was changed as comments."""
    document: Mapping[str, Any] = mask(dict(experiment.document))
    hidden = [f"{place}: a secret, to be put in again or left out" for place in masked_places(document)]
    said = "".join(f"# {mask(sentence)}\n" for sentence in (*experiment.changed, *hidden))
    return said + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
