"""Sampling parameters that the model's generation_config.json fills in if a request leaves them open.

generation_config=auto is the default of every release: a request that names no top_p gets the model's 0.8, not 1.
"""

from pathlib import Path
from typing import Any

from rlaudit.unknown import Unknown
from rlaudit.vllm.checkpoint import is_folder, may_read, read_json_object
from rlaudit.vllm.milestones import PENALTIES_FROM_THE_MODEL
from rlaudit.vllm.resolve import Function, Resolution, ResolutionRule, Resolved, part

_HONOURED = ("repetition_penalty", "temperature", "top_k", "top_p", "min_p", "max_new_tokens")
_LATER = ("presence_penalty", "frequency_penalty")


def apply(view: Resolution) -> Resolved:
    """Return the parameters as a mapping, empty if vLLM's own neutral values hold."""
    source = view.value("generation_config")
    overridden = part(view, "override_generation_config")
    overridden = {} if overridden is None else overridden
    if isinstance(source, Unknown) or not isinstance(overridden, dict):
        return Resolved(Unknown("generation_config is not known"), "generation_config decides")
    honoured = _HONOURED + (_LATER if view.since(PENALTIES_FROM_THE_MODEL) else ())
    extra = _with_max_tokens({key: value for key, value in overridden.items() if key in honoured})
    if source == "vllm":
        return Resolved(extra, "generation_config=vllm leaves the model's file out")
    model = view.config.model
    folder = model.value if source == "auto" and model is not None and model.known else source
    path = Path(folder if isinstance(folder, str) else "") / "generation_config.json"
    if not isinstance(folder, str) or not is_folder(folder) or not may_read(view.config, path):
        return Resolved(Unknown("the model's generation_config.json is not here"), "generation_config=auto reads it")
    if not path.is_file():
        return Resolved(extra, "the model has no generation_config.json")
    file = read_json_object(path)
    if file is None:
        return Resolved(Unknown("generation_config.json cannot be read"), "generation_config=auto reads it")
    values = _with_max_tokens({key: file[key] for key in honoured if file.get(key) is not None})
    return Resolved({**values, **extra}, "from the model's generation_config.json")


def _with_max_tokens(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with vLLM's name for the length."""
    return {"max_tokens" if key == "max_new_tokens" else key: value for key, value in values.items()}


RESOLUTION = ResolutionRule(
    "request_defaults",
    tuple(
        Function(path, "ModelConfig.get_diff_sampling_param")
        for path in ("vllm/config.py", "vllm/config/__init__.py", "vllm/config/model.py")
    ),
    apply,
)
