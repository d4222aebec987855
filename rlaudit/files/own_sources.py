"""Which rlaudit this is: two checkouts of one version may differ, and the nodes of a cluster must compute alike."""

import hashlib
from functools import cache
from pathlib import Path

# What to do if a node has another.
SAME_ON_EVERY_NODE = (
    "Install one rlaudit here and in the environment of every node: the same commit of its repository, or one wheel."
)


@cache
def sources_digest() -> str:
    """Return the SHA-256 of the Python files of this rlaudit, with their places in it.

    Only of these: a wheel holds data that a checkout has elsewhere, and no node reads it.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
