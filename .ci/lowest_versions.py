"""Installs the lowest release of each dependency that pyproject.toml admits, with rlaudit and the tools of its tests.

    python .ci/lowest_versions.py PYTHON

Of direct dependencies only: what they bring along, and the tools, are as new as they may be.
"""

import sys
import tempfile
from pathlib import Path

from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.engines.environments.uv import Uv, find_uv

PROJECT = Path(__file__).resolve().parents[1]

python, uv = Path(sys.argv[1]).absolute(), Uv(find_uv(), read_package_sources())
with tempfile.TemporaryDirectory() as folder:
    lowest = Path(folder, "lowest.txt")
    words = ["--resolution", "lowest-direct", "--no-deps", "--output-file", lowest, PROJECT / "pyproject.toml"]
    uv.pip("compile", python, *words)
    uv.pip("install", python, "--constraint", lowest, f"{PROJECT}[test]")
    print(lowest.read_text())
