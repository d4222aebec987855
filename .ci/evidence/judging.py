"""The packages that judge, and a digest of each: the evidence stands while none has changed."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What names a cause or gives a verdict, and the worlds and faults in which that is tried.
JUDGING = (
    "rlaudit/causes",
    "rlaudit/curves",
    "rlaudit/diagnosis",
    "rlaudit/meaning",
    "rlaudit/statistics",
    "rlaudit/tokens",
    "tests/selftest",
    "tests/worlds",
    ".ci/evidence/known_policy",
)


def digests(root: Path = ROOT) -> dict[str, str]:
    """Return the digest of each of these packages in a checkout: of the names and bytes of its Python files."""
    return {package: _digest(root / package) for package in JUDGING}


def _digest(folder: Path) -> str:
    content = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()
