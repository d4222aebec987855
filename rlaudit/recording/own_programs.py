"""The programs of the environment in which rlaudit alone is installed, which a recorded command does not mean.

`uvx` puts that environment first on PATH, so that `python train.py`, and `torchrun` or `bash` that start Pythons, would
run without vLLM. It is a training's own environment if it has vLLM or torch, and it is meant if it was activated.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


def path_without(environment: Mapping[str, str], word: str) -> str | None:
    """Return the PATH on which a command and its processes find their programs; None if it stays as it is."""
    own = Path(sys.prefix) / "bin"
    path = environment.get("PATH", os.defpath).split(os.pathsep)
    others = os.pathsep.join(place for place in path if not _is(Path(place), own))
    activated = environment.get("VIRTUAL_ENV")
    is_meant = sys.prefix == sys.base_prefix or (activated and _is(Path(activated), Path(sys.prefix)))
    if is_meant or len(others) == len(os.pathsep.join(path)) or any(map(find_spec, ("vllm", "torch"))):
        return None
    return others if shutil.which(word, path=others) else None


def _is(place: Path, other: Path) -> bool:
    try:
        return place.samefile(other)
    except OSError:
        return False
