"""YAML files written for rlaudit: recipes and settings. Rollout configs are read by yaml_text.py, with places."""

from pathlib import Path
from typing import Any

import yaml

from rlaudit.errors import UsageError


def read_yaml_file(path: Path) -> Any:
    """What the file holds. Raises UsageError with the line where it stops being YAML."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        while_ = f" ({error.context})" if error.context else ""
        raise UsageError(f"{path} is not readable as YAML: {error.problem}{line}{while_}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} is not readable as YAML: {' '.join(str(error).split())}") from error
