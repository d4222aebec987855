"""What is known of a model before it is loaded: its config.json, and the size of its weights.

A hub id is read from the hub's cache on this machine, else by two small requests to the hub. A file that cannot be read
is reported, and decides nothing.
Source: the hub's address of a file, /MODEL/resolve/REVISION/FILE, whose answers name the commit in X-Repo-Commit
(huggingface_hub, constants.HUGGINGFACE_HEADER_X_REPO_COMMIT); the layout of its cache ("Understand caching"):
refs/REVISION names a commit, snapshots/COMMIT holds its files.
"""

import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlaudit.engines.models.model import DEFAULT_MODEL, SUMS_MODEL, require_hub_id
from rlaudit.files.home import expanded
from rlaudit.files.parse_json import parse_json
from rlaudit.vllm.checkpoint import hub_snapshot, read_json_object

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
HUB = "https://huggingface.co"
# The models that are made here (model.py): configuration, and bytes of the weights.
MADE = {
    DEFAULT_MODEL: ({"model_type": "llama", "dtype": "bfloat16"}, 269_060_552),
    SUMS_MODEL: ({"model_type": "llama", "dtype": "float32"}, 1_444_352),
}
INDEX = "model.safetensors.index.json"
_SECONDS_TO_ANSWER = 10


@dataclass(frozen=True)
class ModelFiles:
    """What is known of a model."""

    name: str
    # Empty if unknown.
    configuration: Mapping[str, Any] = field(default_factory=dict)
    # Of the weights; None if unknown.
    stored_bytes: int | None = None
    # Why the configuration is unknown.
    unknown: str = ""
    # Of the hub; None for a folder, or if unknown.
    commit: str | None = None

    def weight_bytes(self, dtype: str) -> int | None:
        """Return the least bytes of the weights in this dtype; None if unknown.

        Quantised weights count as they are stored, although a reader may unpack them.
        """
        if self.stored_bytes is None:
            return None
        if dtype not in DTYPE_BYTES or self._stated("quantization_config"):
            return self.stored_bytes
        # The default is float32, with the fewest weights in the same bytes.
        stored = str(self._stated("dtype") or self._stated("torch_dtype") or "float32")
        return self.stored_bytes * DTYPE_BYTES[dtype] // DTYPE_BYTES.get(stored, 4)

    def _stated(self, name: str) -> Any:
        text = self.configuration.get("text_config")
        parts = (self.configuration, text if isinstance(text, Mapping) else {})
        return next((part[name] for part in parts if part.get(name)), None)


def read_model_files(model: str, revision: str | None = None, environ: Mapping[str, str] | None = None) -> ModelFiles:
    """Return what is known of a folder or a hub id. Raises UsageError for a name that can be neither."""
    environ = os.environ if environ is None else environ
    if model in MADE:
        return ModelFiles(model, *MADE[model])
    folder = expanded(model)
    snapshot = None if folder.is_dir() else hub_snapshot(model, revision, environ)
    checkpoint = folder if folder.is_dir() else snapshot
    if checkpoint is not None:
        configuration = read_json_object(checkpoint / "config.json")
        unknown = "" if configuration is not None else f"{checkpoint} holds no config.json that could be read"
        commit = None if snapshot is None else snapshot.name
        return ModelFiles(model, configuration or {}, _stored_bytes(checkpoint), unknown, commit)
    require_hub_id(model)
    if environ.get("HF_HUB_OFFLINE", "0") not in {"", "0"}:
        return ModelFiles(model, unknown="the hub's cache does not hold it, and HF_HUB_OFFLINE is set")
    try:
        return _on_hub(model, revision, environ)
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        return ModelFiles(model, unknown=f"its config.json could not be read on the hub: {why}")


def _stored_bytes(folder: Path) -> int | None:
    index = read_json_object(folder / INDEX)
    if index is not None:
        return _total_size(index)
    return sum(file.stat().st_size for file in folder.glob("*.safetensors")) or None


def _total_size(index: Mapping[str, Any]) -> int | None:
    metadata = index.get("metadata")
    size = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    return int(size) if isinstance(size, int | float) else None


def _on_hub(model: str, revision: str | None, environ: Mapping[str, str]) -> ModelFiles:
    address = f"{environ.get('HF_ENDPOINT') or HUB}/{model}/resolve/{revision or 'main'}"
    secret = environ.get("HF_TOKEN")
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    with _open(f"{address}/config.json", headers) as answer:
        configuration = parse_json(answer.read())
        commit = answer.headers.get("X-Repo-Commit")
    if not isinstance(configuration, dict):
        raise ValueError("it is not a JSON object")
    try:
        with _open(f"{address}/{INDEX}", headers) as answer:
            return ModelFiles(model, configuration, _total_size(parse_json(answer.read())), commit=commit)
    except urllib.error.HTTPError:
        # A model in one file has no index, and one file is no large model.
        return ModelFiles(model, configuration, commit=commit)


def _open(address: str, headers: Mapping[str, str]) -> Any:
    request = urllib.request.Request(address, headers=dict(headers))
    return urllib.request.urlopen(request, timeout=_SECONDS_TO_ANSWER)
