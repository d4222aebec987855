"""Writes the lowest release of each dependency that pyproject.toml admits, as constraints for pip.

    python .ci/lowest_versions.py FILE

Of direct dependencies only: what they bring along, and the tools of the tests, are as new as they may be.
"""

import sys
from pathlib import Path

from rlaudit.engines.environments.pip_configuration import read_package_sources
from rlaudit.engines.environments.uv import Uv, find_uv

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

words = ["--resolution", "lowest-direct", "--no-deps", "--output-file", Path(sys.argv[1]).absolute(), PROJECT]
Uv(find_uv(), read_package_sources()).pip("compile", Path(sys.executable), *words)
