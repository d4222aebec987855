"""Which transformers supports which model type, and so which trainer a model's config.json requires.

The list is extracted from the wheels: `python -m extract_catalogue.model_types VERSION...`
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlaudit.engines.environments.environment_spec import Command, EnvironmentSpec, trainer_spec
from rlaudit.engines.environments.trainer_packages import TRANSFORMERS
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.models.model_files import ModelFiles
from rlaudit.errors import NotFinished

DATA = Path(__file__).with_name("model_types.json")


def model_types(transformers: str) -> frozenset[str]:
    """Return the values of config.json's `model_type` that a release loads without code of the model."""
    return frozenset(json.loads(DATA.read_text(encoding="utf-8"))[transformers])


def transformers_for(model: str, configuration: Mapping[str, Any], trust_remote_code: bool) -> str:
    """Return the first release that supports the model's type and reads the rest of its config.json correctly.

    Without `model_type` it is the first of all. Raises NotFinished for a type that no release supports, unless
    `trust_remote_code`.
    """
    wanted = configuration.get("model_type")
    for release in TRANSFORMERS:
        readable = release.reads_rope_parameters or not _states_only_rope_parameters(configuration)
        if readable and (wanted is None or wanted in model_types(release.version)):
            return release.version
    if trust_remote_code:
        return TRANSFORMERS[0].version
    releases = " and ".join(release.version for release in TRANSFORMERS)
    raise NotFinished(
        f"{model}: no transformers that rlaudit builds a trainer with ({releases}) knows model type {wanted!r}",
        "Name an interpreter whose transformers does: --trainer-python COMMAND; or let the model bring its own code: "
        "trust_remote_code: true in the recipe.",
    )


def choose_trainer(
    files: ModelFiles, accelerator: Accelerator, given: Command = (), *, trust_remote_code: bool = False
) -> EnvironmentSpec:
    """Return the trainer's environment.

    A given interpreter may hold torch and transformers of any release: it is tried before the first engine starts.
    Raises NotFinished for a model type that no transformers of ours supports.
    """
    if given:
        return replace(trainer_spec(accelerator.kind), command=given, torch="")
    transformers = transformers_for(files.name, files.configuration, trust_remote_code)
    return trainer_spec(accelerator.kind, accelerator.driver_cuda, transformers)


def _states_only_rope_parameters(configuration: Mapping[str, Any]) -> bool:
    """Return whether rotary frequencies are given only in the form of transformers 5."""
    parts = [configuration, *(part for part in configuration.values() if isinstance(part, Mapping))]
    return any("rope_parameters" in part and "rope_theta" not in part for part in parts)
