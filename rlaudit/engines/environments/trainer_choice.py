"""Which trainer a model is scored with: the interpreter that was given, or the environment that its files ask for."""

from dataclasses import replace

from rlaudit.engines.environments.environment_spec import Command, EnvironmentSpec, trainer_spec
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.models.model_files import ModelFiles
from rlaudit.engines.models.model_types import transformers_for


def choose_trainer(
    files: ModelFiles, accelerator: Accelerator, given: Command = (), *, trust_remote_code: bool = False
) -> EnvironmentSpec:
    """The trainer's environment. A given interpreter may hold torch and transformers of any release: whether they can
    do the job is tried before the first engine starts.

    Raises NotFinished for a model type that no transformers of ours knows.
    """
    if given:
        return replace(trainer_spec(accelerator.kind), command=given, torch="")
    transformers = transformers_for(files.name, files.configuration, trust_remote_code)
    return trainer_spec(accelerator.kind, accelerator.driver_cuda, transformers)
