"""The folder of what rlaudit keeps between commands: environments, models, digests."""

import os
from pathlib import Path

from platformdirs import user_cache_path

from rlaudit.files.home import expanded

VARIABLE = "RLAUDIT_CACHE_DIR"


def cache_folder() -> Path:
    """Return the folder that the variable names, else the user's cache folder for rlaudit. It may not exist yet."""
    named = os.environ.get(VARIABLE)
    return expanded(named).absolute() if named else user_cache_path("rlaudit")
