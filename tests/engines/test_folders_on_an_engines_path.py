"""Folders that Python puts on an engine's path hold nothing of the name of a package that the engine imports."""

from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from rlaudit.engines.cells.guarded import GUARDIAN
from rlaudit.engines.cells.launch import WORKER
from rlaudit.engines.inside.engine import EXTENSION

PACKAGES = ("vllm", "torch", "transformers", "tokenizers", "numpy", "safetensors", "accelerate")


# A script that is started by path has its folder first on the path, and PYTHONPATH names the extension.
@pytest.mark.parametrize("folder", [WORKER.parent, GUARDIAN.parent, EXTENSION], ids=lambda folder: folder.name)
def test_nothing_of_ours_is_found_for_a_package_of_the_engine(folder: Path) -> None:
    for package in PACKAGES:
        assert PathFinder.find_spec(package, [str(folder)]) is None
