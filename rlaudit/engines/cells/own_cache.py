"""A folder of its own for what an engine compiles, wherever another engine may compile the same at the same time.

vLLM keeps compiled graphs by what they were compiled from, and writes the index of a graph in place
(vLLM's vllm/compilation/backends.py of 0.18.1, save_to_file): an engine that starts meanwhile reads half of it. Engines
of one place follow each other, and find what was compiled there.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_cache_path

from rlaudit.engines.vllm.engine import ENGINE

# Where torch keeps what it compiles; by default in the temporary folder, which a cell has of its own.
OF_TORCH = "TORCHINDUCTOR_CACHE_DIR"


def cache_of_torch(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variable by which cells of one place find what torch compiled for those before them."""
    place = Path(variables.get(ENGINE.compiled_in, user_cache_path("rlaudit") / "compiled" / socket.gethostname()))
    return {OF_TORCH: os.environ.get(OF_TORCH, str(place / "torch"))}


def own_cache(variables: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the variable that names the folder of a `place`: a share of a machine, a node, a job of an array, or one
    within another. A folder that a recipe names is kept."""
    root = user_cache_path("rlaudit") / "compiled"
    given = Path(variables.get(ENGINE.compiled_in, root / socket.gethostname()))
    if given.parent != root:
        return {}
    return {ENGINE.compiled_in: str(given.with_name(re.sub(r"[^\w.-]", "-", f"{given.name}-{place}")))}
