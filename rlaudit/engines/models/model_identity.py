"""The identity of a model: everything in its files that decides a token.

A folder is identified by the contents of its weights and of every other file that an engine, a tokenizer or a trainer
may read: configurations, generation defaults, vocabularies, chat templates, adapters, code. Names and times are not
enough: the next step of a training writes files of the same names and sizes. A hub model is identified by its commit.

Not included are pictures and texts about the model, hidden files, and pickles, which rlaudit never loads (model.py) and
which often hold optimizer states several times as large as the weights. A subfolder with a config.json is another
checkpoint.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlaudit.engines.file_digest import file_digest
from rlaudit.files.home import expanded

CONFIGURATION = "config.json"
WEIGHTS = ".safetensors"
# A folder without any of these is no model.
_OF_MODELS = (CONFIGURATION, "tokenizer.json", "tokenizer_config.json", "generation_config.json", "adapter_config.json")
# Written by rlaudit beside a checkpoint that it made (model.py); its time decides nothing.
STATE = "model.json"
_ABOUT = frozenset({".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"})
_PICKLES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})


def model_identity(model: str, commit: str | None = None) -> dict[str, Any]:
    """Return a model's path and contents, or hub id and commit: equal for models that give equal tokens.

    Raises OSError if a file cannot be read.
    """
    place = expanded(model)
    if place.is_dir():
        return {"path": str(place.resolve()), "revision": None, **contents(place)}
    if place.is_file():
        return {"path": str(place.resolve()), "revision": None, "weights": f"sha256:{file_digest(place)}"}
    return {"path": model, "revision": commit, "weights": None}


def contents(folder: Path) -> dict[str, str]:
    """Return `sha256:…` of names and contents: `weights` of the safetensors, `files` of the others."""
    weights, others = hashlib.sha256(), hashlib.sha256()
    for name in sorted(_read_by_engines(folder)):
        total = weights if name.endswith(WEIGHTS) and os.sep not in name else others
        total.update(f"{name}:{file_digest(folder / name)}\n".encode("utf-8", "surrogateescape"))
    return {"weights": f"sha256:{weights.hexdigest()}", "files": f"sha256:{others.hexdigest()}"}


def identities_in(arguments: Any) -> dict[str, dict[str, str]]:
    """Return the contents of all model folders in engine arguments, at any depth: tokenizer, draft model, adapters.

    Raises OSError if a file cannot be read.
    """
    if isinstance(arguments, Mapping):
        inner: Iterable[Any] = arguments.values()
    elif isinstance(arguments, list | tuple):
        inner = arguments
    else:
        is_model = isinstance(arguments, str) and any((Path(arguments) / name).is_file() for name in _OF_MODELS)
        return {arguments: contents(Path(arguments))} if is_model else {}
    return {name: identity for value in inner for name, identity in identities_in(value).items()}


def _read_by_engines(folder: Path) -> Iterator[str]:
    for root, inner, names in os.walk(folder):
        parent = Path(root)
        inner[:] = [name for name in inner if not name.startswith(".") and not (parent / name / CONFIGURATION).exists()]
        for name in names:
            path = parent / name
            is_ignored = name.startswith(".") or path.suffix.lower() in _ABOUT | _PICKLES or name == STATE
            if not is_ignored and path.is_file():
                yield str(path.relative_to(folder))
