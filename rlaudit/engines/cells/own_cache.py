"""Separate folders for compiled code, for engines that may compile the same at the same time.

vLLM names compiled graphs after their sources, and writes the index of a graph in place (vLLM's
vllm/compilation/backends.py of 0.18.1, save_to_file): an engine that starts meanwhile reads half of it. Engines of one
place run one after the other, and share what was compiled there.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from rlaudit.engines.inside.engine import ENGINE
from rlaudit.files.cache_folder import cache_folder

# Names the folder for torch's compiled code; the default is in the temporary folder, which is removed after a cell.
OF_TORCH = "TORCHINDUCTOR_CACHE_DIR"


def cache_of_torch(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variable by which cells of one place share what torch compiled."""
    place = Path(variables.get(ENGINE.compiled_in, cache_folder() / "compiled" / socket.gethostname()))
    return {OF_TORCH: os.environ.get(OF_TORCH, str(place / "torch"))}


def own_cache(variables: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the variable that names the folder of `place`: a share of a machine, or a node.

    A folder that a recipe names is kept.
    """
    root = cache_folder() / "compiled"
    folder = Path(variables.get(ENGINE.compiled_in, root / socket.gethostname()))
    if folder.parent != root:
        return {}
    return {ENGINE.compiled_in: str(folder.with_name(re.sub(r"[^\w.-]", "-", f"{folder.name}-{place}")))}
