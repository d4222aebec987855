"""Tables of rows in YAML, each read once in a process: plain PyYAML takes a second for the largest."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def yaml_table(path: Path) -> Any:
    """The table of a file, which all who read it share."""
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def table_of(module: str) -> Any:
    """The table beside a module of tests, without `test_`: that of test_logs.py is logs.yaml."""
    path = Path(module)
    return yaml_table(path.with_name(f"{path.stem.removeprefix('test_')}.yaml"))
