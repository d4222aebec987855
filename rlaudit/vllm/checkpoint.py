"""What a checkpoint's own JSON files say, if the config names a folder that is on this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlaudit.parse_json import parse_json
from rlaudit.settings.rollout_config import RolloutConfig
from rlaudit.work_tree import is_inside

LARGEST_BYTES = 1_000_000


def checkpoint_file(config: RolloutConfig, name: str = "config.json") -> Mapping[str, Any] | None:
    """Return a JSON file of a local model folder; None for a hub name, a missing folder or file."""
    model = config.model
    if model is None or not model.known or not isinstance(model.value, str) or not model.value:
        return None
    path = Path(model.value) / name
    return read_json_object(path) if may_read(config, path) else None


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
