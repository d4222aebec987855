"""What a checkpoint's own JSON files say, if the config names a folder that is on this machine.

The configuration of a hub id may be in the hub's cache of this user. Layout of the cache: huggingface_hub, "Understand
caching".
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlaudit.files.home import expanded
from rlaudit.files.parse_json import parse_json
from rlaudit.files.work_tree import is_inside
from rlaudit.settings.rollout_config import RolloutConfig

LARGEST_BYTES = 1_000_000


def checkpoint_file(config: RolloutConfig, name: str = "config.json") -> Mapping[str, Any] | None:
    """Return a JSON file of a local model folder; None for a hub name, a missing folder or file."""
    model = config.model
    if model is None or not model.known or not isinstance(model.value, str) or not model.value:
        return None
    path = Path(model.value) / name
    return read_json_object(path) if may_read(config, path) else None


def cached_config(config: RolloutConfig) -> Mapping[str, Any] | None:
    """Return the config.json of a hub id from the hub's cache; None for a folder, or if the revision is not known."""
    model, revision = config.model, config.engine.get("revision")
    if model is None or not model.known or not isinstance(model.value, str) or model.value.count("/") != 1:
        return None
    branch = None if revision is None else revision.value
    if branch is not None and not isinstance(branch, str):
        return None
    folder = None if is_folder(model.value) else hub_snapshot(model.value, branch, os.environ)
    return None if folder is None else read_json_object(folder / "config.json")


def hub_snapshot(model: str, revision: str | None, environ: Mapping[str, str]) -> Path | None:
    """Return the cached folder of a hub id at a branch, tag or commit, `main` by default; its name is the commit.

    None if it has no configuration, or if the revision would lead out of the cache.
    """
    if revision is not None and (".." in Path(revision).parts or Path(revision).is_absolute()):
        return None
    home = Path(environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    cache = expanded(environ.get("HF_HUB_CACHE") or home / "hub")
    repository = cache / f"models--{model.replace('/', '--')}"
    reference = repository / "refs" / (revision or "main")
    try:
        commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
        snapshot = repository / "snapshots" / (commit or "")
        return snapshot if commit and (snapshot / "config.json").is_file() else None
    except (OSError, ValueError):
        return None


def may_read(config: RolloutConfig, path: Path) -> bool:
    """Return whether a path that the config names is in the work trees of what the user names."""
    return config.trees is None or is_inside(path, config.trees)


def read_json_object(path: Path) -> Mapping[str, Any] | None:
    """Return the JSON object in a regular file of a sensible size; None for anything else, however hostile."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
            return None
        value = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_folder(path: str) -> bool:
    """Return whether a folder exists; False for a name that no file system takes."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False
