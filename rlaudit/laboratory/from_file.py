"""The experiment of a file: a recipe, or one made from what an audit of a config or recording suspects."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from rlaudit.engines.hardware.accelerator import Accelerator, machine_of
from rlaudit.engines.models.model import MADE_HERE
from rlaudit.engines.models.model_files import ModelFiles, read_model_files
from rlaudit.errors import UsageError
from rlaudit.files.home import expanded
from rlaudit.files.yaml_file import read_yaml_file
from rlaudit.inspection.inspect import one_config
from rlaudit.laboratory.recipe import RECIPE_SCHEMA, Experiment
from rlaudit.laboratory.recorded_requests import RecordedRequests, recorded_requests
from rlaudit.laboratory.studies.arms.from_config import experiment_from
from rlaudit.laboratory.studies.arms.further_factors import Named
from rlaudit.laboratory.studies.updates.from_recording import updates_from
from rlaudit.laboratory.study import known_studies
from rlaudit.recording.recording import is_recording, open_recording
from rlaudit.rules.audit.audit import Audit
from rlaudit.secrets import mask, masked_places
from rlaudit.vllm.builds import released_for
from rlaudit.vllm.machine import Machine


def is_recipe(path: Path) -> bool:
    """Return whether a file is a recipe and not a rollout config. One that is neither counts as a faulty recipe."""
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
    *,
    updates: bool = False,
    named: Named = MappingProxyType({}),
) -> Experiment:
    """Inspect the config or the recording and make an experiment of it.

    repeated: arguments and variables that are taken over although they come from a recording. updates: whether the
    experiment is about its weight updates. named: factors of the command line. Raises UsageError for no config or
    several, and for an unknown name.
    """
    if after is None and is_recording(path):
        newest = released_for(accelerator.kind)[-1]
        experiment = experiment_of(
            path, before, str(newest), model, accelerator, repeated, updates=updates, named=named
        )
        sentence = f"to vLLM {newest}, the newest release that runs here (another one with --to)"
        return replace(experiment, changed=(sentence, *experiment.changed))
    inspected = one_config(path, machine_of(accelerator), before, after, "neither a recipe nor a rollout config")
    config = inspected.audit.config
    unknown = [name for name in repeated if name not in {**config.engine, **config.environment}]
    if unknown:
        raise UsageError(f"--take-over {unknown[0]}: the recording has no such argument or variable")
    if updates:
        chosen = model_on_this_machine(inspected.audit, model)
        return updates_from(inspected.audit, open_recording(path), accelerator.kind, chosen)
    recorded = None
    if is_recording(path):
        recorded, model = recorded_requests(path), model_on_this_machine(inspected.audit, model)
        if model is not None and expanded(model).is_dir():
            refuse_another_vocabulary(recorded, read_model_files(model))
    findings = inspected.findings
    if accelerator.kind == "cpu":
        # What an inspection suspects of the run on GPUs is named, although it cannot be tried here.
        findings += one_config(path, Machine(), before, after).findings
    return experiment_from(inspected.audit, findings, accelerator, model, recorded, repeated, named)


def model_on_this_machine(audit: Audit, named: str | None) -> str | None:
    """Return the model of a recording's experiment: the one that the command line names, else the recording's.

    None if neither names one. Raises UsageError for a recording's model that would have to be fetched.
    """
    setting = audit.config.model
    recorded = setting.value if setting is not None and isinstance(setting.value, str) else None
    if named is None and recorded is not None and recorded not in MADE_HERE and not expanded(recorded).is_dir():
        raise UsageError(
            f"the recording's model {recorded} is not on this machine, and nothing is fetched that a recording names",
            f"name it yourself: --model {recorded}, or a folder that holds it",
        )
    return named or recorded


def refuse_another_vocabulary(requests: RecordedRequests, files: ModelFiles) -> None:
    """Raise UsageError if a recorded token is not in the model's vocabulary: an engine may fail late, or go on."""
    vocabulary = files.configuration.get("vocab_size")
    sequences = [*requests.prompts, *(completion.token_ids for completion in requests.completions)]
    beyond = next((token for ids in sequences for token in ids if not 0 <= token < (vocabulary or token + 1)), None)
    if beyond is not None:
        raise UsageError(
            f"the recording has token {beyond}, and {files.name} those below {vocabulary}: it is another tokenizer's",
            "give the recorded model, in any folder: --model",
        )


def as_yaml(experiment: Experiment) -> str:
    """Return the recipe as a YAML file, with what was changed as comments."""
    document: Mapping[str, Any] = mask(dict(experiment.document))
    hidden = [f"{place}: a secret, to be put in again or left out" for place in masked_places(document)]
    comments = "".join(f"# {mask(sentence)}\n" for sentence in (*experiment.changed, *hidden))
    return comments + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
